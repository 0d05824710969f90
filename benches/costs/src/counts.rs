//! Committed counts by environment.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use bench_harness::root;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// Counted costs of one case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Costs {
    /// Number of instructions.
    pub instructions: u64,
    /// Number of allocations.
    pub allocations: u64,
    /// Most bytes that were allocated at the same time.
    pub peak_bytes: u64,
}

/// Costs by the name of the case.
pub type Counts = BTreeMap<String, Costs>;

/// Committed counts of several environments.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CountSets(Vec<CountSet>);

#[derive(Serialize, Deserialize)]
struct CountSet {
    environment: Environment,
    counts: Counts,
}

impl CountSets {
    /// Reads the file with the committed counts.
    ///
    /// # Errors
    ///
    /// The file is missing or malformed.
    pub fn read() -> anyhow::Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Returns the counts of an environment.
    #[must_use]
    pub fn for_environment(&self, environment: &Environment) -> Option<&Counts> {
        let set = self.0.iter().find(|set| set.environment == *environment);
        set.map(|set| &set.counts)
    }

    /// Replaces the counts of an environment, in the file as well.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn replace(&mut self, environment: Environment, counts: Counts) -> anyhow::Result<()> {
        self.0.retain(|set| set.environment != environment);
        self.0.push(CountSet {
            environment,
            counts,
        });
        let text = serde_json::to_string_pretty(self)? + "\n";
        let path = path();
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

fn path() -> PathBuf {
    root().join("benches/costs/counts.json")
}
