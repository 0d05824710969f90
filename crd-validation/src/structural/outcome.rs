//! Result of the structural checks of one node.

use crate::bounded::Bounded;
use crate::field::error::{BadValue, FieldError};
use crate::field::path::{Cursor, FieldPath};
use crate::ratcheted::RatchetedViolations;
use crate::report::{Report, blocks_cel};
use crate::violation::Violation;

/// Result of the checks of one node.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Errors. `None` for nearly every node.
    found: Option<Box<Found>>,
    /// Number of checks that passed or were made. If several alternatives all fail, the API server reports the
    /// errors of the alternative with the highest number.
    pub(super) matches: u32,
}

/// Errors of a node and of all nodes below it.
#[derive(Default)]
struct Found {
    /// Errors of the node itself, without fingerprints.
    own: Vec<Violation>,
    /// Errors that deny the object.
    errors: Bounded<Violation>,
    /// If true, the API server skips CEL rules because of one of these errors.
    blocks_cel: bool,
    /// Errors that were ratcheted in an earlier validation.
    known: Bounded<Violation>,
    /// Errors that the old object has too.
    ratcheted: Bounded<Violation>,
}

impl Outcome {
    /// Adds the result of the checks of another node.
    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        let Some(other) = other.found else {
            return;
        };
        let Some(found) = &mut self.found else {
            self.found = Some(other);
            return;
        };
        found.own.extend(other.own);
        found.errors.append(other.errors);
        found.blocks_cel |= other.blocks_cel;
        found.known.append(other.known);
        found.ratcheted.append(other.ratcheted);
    }

    /// Returns true if no error was found.
    pub(super) fn is_valid(&self) -> bool {
        self.found.as_ref().is_none_or(|found| {
            found.own.is_empty() && found.errors.is_empty() && found.known.is_empty()
        })
    }

    /// Returns the number of errors of the node itself that have no fingerprint yet.
    pub(super) fn unsettled(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.own.len())
    }

    /// Gives the errors of the node itself the fingerprint of its value.
    pub(super) fn settle(
        &mut self,
        inputs: impl FnOnce() -> u64,
        known: Option<&RatchetedViolations>,
    ) {
        let Some(found) = &mut self.found else {
            return;
        };
        if found.own.is_empty() {
            return;
        }
        let inputs = Some(inputs());
        for mut violation in std::mem::take(&mut found.own) {
            violation.inputs = inputs;
            if known.is_some_and(|known| known.contains_violation(&violation)) {
                found.known.push(violation);
            } else {
                found.blocks_cel |= blocks_cel(&violation);
                found.errors.push(violation);
            }
        }
    }

    /// Makes all errors ratcheted ones: the value is unchanged, so that the old object has them too.
    pub(super) fn ratchet(&mut self) {
        if let Some(found) = &mut self.found {
            found.blocks_cel = false;
            found.ratcheted.append(std::mem::take(&mut found.errors));
            found.ratcheted.append(std::mem::take(&mut found.known));
        }
    }

    /// Adds all errors to the report.
    pub(super) fn report(self, report: &mut Report<'_>) {
        if let Some(found) = self.found {
            report.deny_all(found.errors, found.blocks_cel);
            report.ratchet_all(found.known);
            report.ratchet_all(found.ratcheted);
        }
    }

    /// Adds an error.
    pub(crate) fn push(&mut self, keyword: &str, at: Cursor<'_>, error: FieldError) {
        let found = self.found.get_or_insert_default();
        found.own.push(Violation::of_schema(keyword, at, error));
    }

    /// Adds an error of type `Invalid`.
    pub(crate) fn invalid(
        &mut self,
        keyword: &str,
        at: Cursor<'_>,
        value: impl Into<BadValue>,
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
