//! Result of the structural checks of one node.

use serde_json::Value;

use crate::field::error::FieldError;
use crate::field::path::{Cursor, FieldPath};
use crate::violation::Violation;

/// Result of the checks of one node.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) errors: Vec<Violation>,
    /// Ratcheted errors: errors that the old object has too.
    pub(super) ratcheted: Vec<Violation>,
    /// Number of checks that passed or were made. If several alternatives all fail, the API server reports the
    /// errors of the alternative with the highest number.
    pub(super) matches: u32,
}

impl Outcome {
    /// Adds the result of the checks of another node.
    pub(super) fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.ratcheted.extend(other.ratcheted);
        self.matches += other.matches;
    }

    /// Returns true if no error was found.
    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error.
    pub(crate) fn push(&mut self, keyword: &str, at: Cursor<'_>, error: FieldError) {
        self.errors.push(Violation::of_schema(keyword, at, error));
    }

    /// Adds an error of type `Invalid`.
    pub(crate) fn invalid(
        &mut self,
        keyword: &str,
        at: Cursor<'_>,
        value: impl Into<Value>,
        what: &str,
    ) {
        let path = at.to_path();
        let detail = format!("{} in body {what}", path.as_str());
        self.push(keyword, at, FieldError::invalid(path, value, detail));
    }

    /// Adds an error for which the API server names no field and only mentions the path in the message.
    pub(crate) fn invalid_without_path(&mut self, keyword: &str, at: Cursor<'_>, detail: String) {
        self.push(
            keyword,
            at,
            FieldError::invalid(FieldPath::root(), "", detail),
        );
    }
}
