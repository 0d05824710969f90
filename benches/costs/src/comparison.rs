//! Comparison of counted costs with the committed ones.

use std::fmt;

use crate::counts::{Costs, Counts};

/// Percentage by which a count may be above the committed one.
pub const MAX_INCREASE: u64 = 3;

/// Costs of one case, beside the committed ones.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparison {
    case: String,
    counted: Costs,
    committed: Option<Costs>,
}

/// Count of a case.
struct Metric {
    unit: &'static str,
    count: fn(&Costs) -> u64,
}

const METRICS: [Metric; 3] = [
    Metric {
        unit: "instructions",
        count: |costs| costs.instructions,
    },
    Metric {
        unit: "allocations",
        count: |costs| costs.allocations,
    },
    Metric {
        unit: "bytes at peak",
        count: |costs| costs.peak_bytes,
    },
];

impl Comparison {
    /// Compares all counted costs with the committed ones.
    #[must_use]
    pub fn compare_all(counted: &Counts, committed: Option<&Counts>) -> Vec<Self> {
        let compared = counted.iter().map(|(case, &counted)| Self {
            case: case.clone(),
            counted,
            committed: committed.and_then(|counts| counts.get(case)).copied(),
        });
        compared.collect()
    }

    /// Returns true if no count is too far above the committed one.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.committed.is_some_and(|committed| {
            METRICS.iter().all(|Metric { count, .. }| {
                count(&self.counted) * 100 <= count(&committed) * (100 + MAX_INCREASE)
            })
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<26}", self.case)?;
        for Metric { unit, count } in METRICS {
            write!(f, " {:>11} {unit}", count(&self.counted))?;
            let change = self
                .committed
                .map(|committed| change(count(&self.counted), count(&committed)));
            match change {
                Some(change) => write!(f, " ({change:+.2} %)")?,
                None => f.write_str(" (not committed)")?,
            }
        }
        Ok(())
    }
}

/// Returns the percentage by which a count is above the committed one.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts are far below the numbers that an f64 rounds"
)]
fn change(counted: u64, committed: u64) -> f64 {
    (counted as f64 / committed as f64 - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_more_than_three_percent_above_the_committed_one_is_not_accepted() {
        let committed = Costs {
            instructions: 100_000,
            allocations: 1_000,
            peak_bytes: 10_000,
        };
        let is_accepted = |counted, committed| {
            let comparison = Comparison {
                case: "small".to_owned(),
                counted,
                committed,
            };
            comparison.is_accepted()
        };
        let most = Costs {
            instructions: 103_000,
            allocations: 1_030,
            peak_bytes: 10_300,
        };
        assert!(is_accepted(most, Some(committed)));
        assert!(is_accepted(Costs::default(), Some(committed)));
        assert!(!is_accepted(most, None));
        for too_many in [
            Costs {
                instructions: 103_001,
                ..most
            },
            Costs {
                allocations: 1_031,
                ..most
            },
            Costs {
                peak_bytes: 10_301,
                ..most
            },
        ] {
            assert!(!is_accepted(too_many, Some(committed)), "{too_many:?}");
        }
    }

    #[test]
    fn a_comparison_names_the_change_of_each_count() {
        let counted = Costs {
            instructions: 103_100,
            allocations: 990,
            peak_bytes: 10_000,
        };
        let committed = Costs {
            instructions: 100_000,
            allocations: 1_000,
            peak_bytes: 10_000,
        };
        let comparison = Comparison {
            case: "small".to_owned(),
            counted,
            committed: Some(committed),
        };
        let shown = comparison.to_string();
        let words: Vec<_> = shown.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "small 103100 instructions (+3.10 %) 990 allocations (-1.00 %) 10000 bytes at peak (+0.00 %)"
        );
    }
}
