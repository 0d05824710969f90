//! Order of engine versions.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Engine version, such as `17.6` or `8.0.46-rds.20260908`, ordered by its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionName(String);

impl VersionName {
    /// Creates a version from its name in RDS.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the name in RDS.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parts, of which numbers come before texts.
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let parts = self.0.split(['.', '-']);
        parts.map(|part| part.parse().map_or(Part::Text(part), Part::Number))
    }
}

impl Ord for VersionName {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_parts = self.parts().cmp(other.parts());
        // Only equal names are equal: 1.0 and 1.00 are not.
        by_parts.then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for VersionName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Text(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let mut versions = [
            "16.10",
            "16.9",
            "9.6.24",
            "16",
            "8.0.46-rds.20260908",
            "8.0.46",
        ]
        .map(VersionName::new);
        versions.sort();
        let names = versions.each_ref().map(VersionName::as_str);
        let expected = [
            "8.0.46",
            "8.0.46-rds.20260908",
            "9.6.24",
            "16",
            "16.9",
            "16.10",
        ];
        assert_eq!(names, expected);
    }
}
