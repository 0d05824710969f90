//! Versions of Vector, as far as they decide which configurations are valid.

use std::fmt;

use lockstep_vector_vrl::Language;
use serde::{Deserialize, Serialize};

/// Minor version of Vector, such as 0.57. Patch releases have the same options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VectorVersion {
    major: u32,
    minor: u32,
}

impl VectorVersion {
    /// First version with template confinement, and the first that replaces environment variables only on request.
    pub const V0_57: Self = Self::zero(57);

    /// First version that takes a null for an option that is left out, that requires absolute URLs as endpoints, and that
    /// has dashes in the names of secret backends.
    pub const V0_58: Self = Self::zero(58);

    /// First version whose sources were read for the rules about the start: most of them are those of all later versions.
    pub const FIRST_READ: Self = Self::zero(40);

    /// Version of the image of a workload that names none.
    pub const DEFAULT: Self = Self::V0_57;

    const fn zero(minor: u32) -> Self {
        Self { major: 0, minor }
    }

    /// Versions with which the results of this program were compared. A rule about the start of another version is an
    /// assumption.
    pub const MEASURED: [Self; 2] = [Self::V0_57, Self::V0_58];

    /// Returns true if the results of this program were compared with those of this version.
    #[must_use]
    pub fn is_measured(self) -> bool {
        Self::MEASURED.contains(&self)
    }

    /// Returns the measured version whose rules about the start apply to this version.
    #[must_use]
    pub fn nearest_measured(self) -> Self {
        let [oldest, newest] = Self::MEASURED;
        if self < newest { oldest } else { newest }
    }

    /// Returns how far another version is; of two at one distance, the older one is nearer. None if their major versions differ:
    /// the tag of an image of one's own may have other numbers.
    #[must_use]
    pub fn distance(self, other: Self) -> Option<(u32, Self)> {
        (self.major == other.major).then(|| (self.minor.abs_diff(other.minor), other))
    }

    /// Returns the language of the programs of this version.
    #[must_use]
    pub fn language(self) -> Language {
        if self.major == 0 {
            Language::of_vector(self.minor)
        } else {
            Language::NEWEST
        }
    }

    /// Returns true if this version replaces environment variables whatever its arguments are.
    #[must_use]
    pub fn always_interpolates(self) -> bool {
        self < Self::V0_57
    }

    /// Returns the version in a text that begins with it, such as `0.57.0-alpine` or `v0.57`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = text.split_once('.')?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (minor, rest) = rest.split_at(end.unwrap_or(rest.len()));
        // `1.2b` is no version.
        if !rest.is_empty() && !rest.starts_with(['.', '-', '+']) {
            return None;
        }
        Some(Self {
            major: number(major)?,
            minor: number(minor)?,
        })
    }

    /// Returns the version that the tag of a container image names. A digest names none.
    #[must_use]
    pub fn of_image(image: &str) -> Option<Self> {
        let (image, _) = image.split_once('@').unwrap_or((image, ""));
        let (_, tag) = image.rsplit_once(':')?;
        // The port of a registry is no tag.
        (!tag.contains('/')).then(|| Self::parse(tag)).flatten()
    }
}

fn number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for VectorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl TryFrom<String> for VectorVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let version = Self::parse(&text);
        version.ok_or_else(|| format!("`{text}` is no version of Vector, such as `0.57`"))
    }
}

impl From<VectorVersion> for String {
    fn from(version: VectorVersion) -> Self {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_image_is_that_of_its_tag() {
        for (image, expected) in [
            ("timberio/vector:0.57.0-distroless-libc", Some("0.57")),
            ("timberio/vector:0.57.X-alpine", Some("0.57")),
            ("registry:5000/mirror/vector:v0.48.1", Some("0.48")),
            ("vector:0.9-debian@sha256:0123", Some("0.9")),
            ("vector:latest-alpine", None),
            ("vector:nightly-2026-01-01-debian", None),
            ("vector:2026-01-01", None),
            ("vector:1.2b", None),
            ("vector:+1.2", None),
            ("registry:5000/vector", None),
            ("registry:0.57/vector", None),
            ("vector@sha256:0123", None),
            ("vector", None),
        ] {
            let version = VectorVersion::of_image(image).map(|version| version.to_string());
            assert_eq!(version.as_deref(), expected, "{image}");
        }
    }
}
