//! Committed counts, and their comparison with measured ones.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// Percentage by which a count may be above the committed one.
pub(crate) const MAX_INCREASE: u64 = 3;

/// Instructions by the name of the review.
pub(crate) type Counts = BTreeMap<String, u64>;

/// Committed counts of several environments.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CountSets(Vec<CountSet>);

#[derive(Serialize, Deserialize)]
struct CountSet {
    environment: Environment,
    instructions: Counts,
}

/// Measured count with the committed one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    name: String,
    measured: u64,
    committed: Option<u64>,
}

impl CountSets {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Returns the counts of an environment.
    pub(crate) fn of(&self, environment: &Environment) -> Option<&Counts> {
        let set = self.0.iter().find(|set| set.environment == *environment);
        set.map(|set| &set.instructions)
    }

    /// Replaces the counts of an environment, in the file as well.
    pub(crate) fn replace(
        &mut self,
        environment: Environment,
        instructions: Counts,
    ) -> anyhow::Result<()> {
        self.0.retain(|set| set.environment != environment);
        self.0.push(CountSet {
            environment,
            instructions,
        });
        let text = serde_json::to_string_pretty(self)? + "\n";
        let path = path();
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

impl Comparison {
    /// Compares all measured counts with the committed ones.
    pub(crate) fn of_all(measured: &Counts, committed: Option<&Counts>) -> Vec<Self> {
        let compared = measured.iter().map(|(name, &measured)| Self {
            name: name.clone(),
            measured,
            committed: committed.and_then(|counts| counts.get(name)).copied(),
        });
        compared.collect()
    }

    /// Returns true if the count is not too far above the committed one.
    pub(crate) fn is_accepted(&self) -> bool {
        self.committed
            .is_some_and(|committed| self.measured * 100 <= committed * (100 + MAX_INCREASE))
    }

    /// Returns the part by which the count is above the committed one.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts are far below the numbers that an f64 rounds"
    )]
    fn increase(&self) -> Option<f64> {
        let committed = self.committed?;
        Some(self.measured as f64 / committed as f64 - 1.0)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, measured, .. } = self;
        write!(f, "{name:<28} {measured:>12} instructions")?;
        match self.increase() {
            Some(increase) => write!(f, ", {:+.2} %", increase * 100.0),
            None => f.write_str(", no committed count"),
        }
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_more_than_three_percent_above_the_committed_one_is_not_accepted() {
        let comparison = |measured, committed| Comparison {
            name: "small".to_owned(),
            measured,
            committed,
        };
        assert!(comparison(103_000, Some(100_000)).is_accepted());
        assert!(comparison(50_000, Some(100_000)).is_accepted());
        assert!(!comparison(103_001, Some(100_000)).is_accepted());
        assert!(!comparison(1, None).is_accepted());
        assert_eq!(
            comparison(103_100, Some(100_000)).to_string(),
            "small                              103100 instructions, +3.10 %"
        );
    }
}
