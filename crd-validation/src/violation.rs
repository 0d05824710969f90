//! Violation: a field error together with the rule that reports it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bounded::Reported;
use crate::field::error::{ErrorType, FieldError};
use crate::field::path::{Cursor, FieldPath};
use crate::field::text::{MAX_NAME_BYTES, shortened_name};
use crate::format::go_fmt;
use crate::identities;

/// Layer of a CRD in which a rule is written. The variants are in the order in which the API server evaluates
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `OpenAPI` schema.
    Schema,
    /// CEL rules: `x-kubernetes-validations`.
    Cel,
}

/// Violation of one rule at one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Id of the rule.
    pub rule: String,
    /// Layer in which the rule is written.
    pub layer: Layer,
    /// Path of the field. It equals the path of the error, except for error types for which the API server
    /// names no field.
    pub at: FieldPath,
    /// The error.
    pub error: FieldError,
    /// Fingerprint of all values that the error depends on. The error stays the same while the fingerprint
    /// does. `None` if the error is never ratcheted.
    pub inputs: Option<u64>,
}

impl Violation {
    /// Creates a violation of a keyword of the schema, or of a rule for metadata, that is never ratcheted.
    pub(crate) fn of_schema(keyword: &str, at: Cursor<'_>, error: FieldError) -> Self {
        Self {
            rule: format!("{}/{keyword}", at.to_pattern()),
            layer: Layer::Schema,
            at: at.to_path(),
            error,
            inputs: None,
        }
    }
}

/// Identity of a ratcheted error. The error stays a warning as long as no value that it depends on changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RatchetedViolation {
    /// Id of the rule.
    pub rule: String,
    /// Path of the field.
    pub at: String,
    /// Fingerprint of the values that the error depends on.
    pub inputs: String,
}

impl RatchetedViolation {
    /// Creates the identity of an error from its rule, its path and the fingerprint of its inputs. The schema of the status
    /// limits the length of the rule and the path: a long one ends with a fingerprint.
    #[must_use]
    pub fn new(rule: &str, at: &FieldPath, inputs: u64) -> Self {
        Self {
            rule: shortened_name(rule, MAX_NAME_BYTES).into_owned(),
            at: shortened_name(at.as_str(), MAX_NAME_BYTES).into_owned(),
            inputs: format!("{inputs:016x}"),
        }
    }

    pub(crate) fn is_of_rule(&self, rule: &str) -> bool {
        self.rule == shortened_name(rule, MAX_NAME_BYTES)
    }

    pub(crate) fn of(violation: &Violation) -> Option<Self> {
        Some(Self::new(&violation.rule, &violation.at, violation.inputs?))
    }
}

/// Computes a fingerprint of values. It is stored in the cluster, so the algorithm must never change.
pub fn fingerprint<'a>(values: impl IntoIterator<Item = &'a Value>) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    for value in values {
        let written = go_fmt::write_json(value, &mut HashedText(&mut hasher));
        written.expect("a hasher accepts any text");
        hasher.write_u8(0);
    }
    hasher.finish()
}

/// Text that is hashed instead of stored.
struct HashedText<'a>(&'a mut fnv::FnvHasher);

impl fmt::Write for HashedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// Orders violations by field.
impl Reported for Violation {
    fn order(&self, other: &Self) -> Ordering {
        let by_location = (&self.at, self.layer).cmp(&(&other.at, other.layer));
        by_location.then_with(|| self.error.body().cmp(&other.error.body()))
    }

    fn is_internal(&self) -> bool {
        self.error.error_type == ErrorType::Internal
    }

    fn identity(&self) -> Option<u64> {
        let inputs = self.inputs?;
        Some(identities::identity(&self.rule, &self.at, inputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_of_a_ratcheted_error_fits_into_a_status() {
        let identity = |name: &str| {
            let text = format!("spec.{}", name.repeat(600));
            let path = FieldPath::new(text.as_str());
            assert!(path.as_str().len() > MAX_NAME_BYTES);
            RatchetedViolation::new(&text, &path, 1)
        };
        let long = identity("ab");
        assert!(long.at.len() <= MAX_NAME_BYTES && long.rule.len() <= MAX_NAME_BYTES);
        assert_eq!(long, identity("ab"));
        let end = FieldPath::new(format!("spec.{}c", "ab".repeat(599)).as_str());
        let other = RatchetedViolation::new("", &end, 1);
        assert_ne!(other.at, long.at, "different paths remain different");
        // What is stored is recognized.
        let stored = FieldPath::new(long.at.as_str());
        assert_eq!(RatchetedViolation::new("", &stored, 1).at, long.at);
        let short = RatchetedViolation::new("rule", &FieldPath::new("spec.size"), 1);
        assert_eq!(
            (short.rule.as_str(), short.at.as_str()),
            ("rule", "spec.size")
        );
    }
}
