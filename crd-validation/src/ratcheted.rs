//! Ratcheted errors of an object as they are stored: the first of them in full, and all of them in a filter of bounded size.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::bounded::MAX_REPORTED;
use crate::field::path::FieldPath;
use crate::identities::{Identities, RatchetedFilter, identity};
use crate::violation::{RatchetedViolation, Violation};

/// Ratcheted errors of an object.
///
/// # Guarantees
///
/// [`contains`](Self::contains) returns true for each of them, however many there are: whether an object is valid does not
/// depend on a bound. The size is bounded: if there are more than [`MAX_REPORTED`], all of them are in a
/// [filter](RatchetedFilter).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatchetedViolations {
    /// The first ones in their order, at most [`MAX_REPORTED`].
    #[serde(rename = "ratcheted", default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<RatchetedViolation>,
    /// All of them, if some are not listed.
    #[serde(
        rename = "ratchetedFilter",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub filter: Option<RatchetedFilter>,
}

impl RatchetedViolations {
    /// Creates the stored form of the ratcheted errors with these identities. `shown` are those errors that were kept.
    pub fn new(all: Identities, shown: impl IntoIterator<Item = RatchetedViolation>) -> Self {
        let shown: BTreeSet<_> = shown.into_iter().collect();
        let listed: Vec<_> = shown.into_iter().take(MAX_REPORTED).collect();
        let filter = (all.len() != Some(listed.len())).then(|| all.into_filter());
        Self { listed, filter }
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.filter.is_none()
    }

    /// Returns true if an error is among them. If it is not, the result is nevertheless true with the small probability
    /// of a [filter](RatchetedFilter).
    #[must_use]
    pub fn contains(&self, rule: &str, at: &FieldPath, inputs: u64) -> bool {
        if let Some(filter) = &self.filter {
            return filter.contains(identity(rule, at, inputs));
        }
        let mut of_rule = self.listed.iter().filter(|known| known.is_of_rule(rule));
        of_rule.any(|known| *known == RatchetedViolation::new(rule, at, inputs))
    }

    /// Returns true if a violation is among them: it was ratcheted in an earlier validation, and its inputs have not changed.
    pub(crate) fn contains_violation(&self, violation: &Violation) -> bool {
        let contains = |inputs| self.contains(&violation.rule, &violation.at, inputs);
        violation.inputs.is_some_and(contains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identities::{MAX_EXACT, MAX_FILTER_BYTES, MAX_FILTER_TEXT_BYTES};

    fn path(index: usize) -> FieldPath {
        FieldPath::new("spec.tags").index(index)
    }

    /// Returns what is stored of this many errors, of which as many are kept as in a report, and how many others than these
    /// are found in it, of a hundred thousand.
    fn stored(count: usize) -> (RatchetedViolations, usize) {
        let mut all = Identities::default();
        // As the errors of parts of an object are put together.
        for part in (0..count).collect::<Vec<_>>().chunks(7) {
            let mut identities = Identities::default();
            for index in part {
                identities.insert(identity("rule", &path(*index), 1));
            }
            all.append(identities);
        }
        let shown = (0..count.min(MAX_REPORTED)).map(path);
        let shown = shown.map(|at| RatchetedViolation::new("rule", &at, 1));
        let stored = RatchetedViolations::new(all, shown);
        let text = serde_json::to_string(&stored).expect("JSON");
        let stored: RatchetedViolations = serde_json::from_str(&text).expect("what was written");
        for index in 0..count {
            assert!(stored.contains("rule", &path(index), 1), "{index}");
        }
        let others = (0..100_000).filter(|index| stored.contains("rule", &path(*index), 2));
        let others = others.count();
        (stored, others)
    }

    #[test]
    fn each_ratcheted_error_is_recognized_and_another_one_is_not() {
        for (count, bytes) in [
            (1, 0),
            (MAX_REPORTED, 0),
            (MAX_REPORTED + 1, 1 << 10),
            (150, 2 << 10),
            (2_000, 16 << 10),
            (MAX_EXACT, MAX_FILTER_BYTES),
            (MAX_EXACT + 1, MAX_FILTER_BYTES),
        ] {
            let (stored, others) = stored(count);
            assert_eq!(stored.listed.len(), count.min(MAX_REPORTED));
            let filter = stored.filter.map_or(0, |filter| filter.bytes.len());
            assert_eq!((filter, others <= 3), (bytes, true), "{count}: {others}");
        }
    }

    #[test]
    fn of_very_many_ratcheted_errors_each_one_is_recognized_and_the_size_is_bounded() {
        let (stored, others) = stored(40_000);
        let text = String::from(stored.filter.expect("a filter"));
        assert_eq!(text.len(), MAX_FILTER_TEXT_BYTES);
        assert!(others < 10_000, "{others}");
    }

    #[test]
    fn what_is_stored_does_not_depend_on_the_order_in_which_errors_are_found() {
        for count in [200, MAX_EXACT, MAX_EXACT + 100, 3 * MAX_EXACT] {
            let identities: Vec<_> = (0..count).map(|at| identity("", &path(at), 1)).collect();
            let mut rising = Identities::default();
            let mut falling = Identities::default();
            for identity in &identities {
                rising.insert(*identity);
            }
            for part in identities.chunks(count / 2).rev() {
                let mut some = Identities::default();
                for identity in part.iter().rev() {
                    some.insert(*identity);
                }
                falling.append(some);
            }
            assert_eq!(rising.into_filter(), falling.into_filter(), "{count}");
        }
    }

    #[test]
    fn a_text_that_is_no_filter_is_an_error() {
        for text in ["", "?", "AAAA", &"A".repeat(MAX_FILTER_TEXT_BYTES * 2)] {
            assert!(RatchetedFilter::try_from(text.to_owned()).is_err());
        }
        assert!(RatchetedFilter::try_from("AAA=".to_owned()).is_ok());
    }
}
