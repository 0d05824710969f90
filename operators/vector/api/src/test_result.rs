//! Results of the tests of a configuration.

use lockstep_vector_config::Catalogue;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Function that runs the tests of a configuration, and returns one result for each.
pub type RunTests = fn(&Catalogue, &Value) -> Vec<NamedResult>;

/// Result of a test with this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedResult {
    /// Name of the test.
    pub name: String,
    /// Result.
    pub result: TestResult,
}

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TestResult {
    /// It passed.
    Passed,
    /// It failed, for these reasons.
    Failed(Vec<String>),
    /// Only Vector can run it, for this reason.
    NotRun(String),
    /// Its definition is wrong.
    Invalid(String),
}

impl TestResult {
    /// Replaces each reason.
    #[must_use]
    pub fn map_reasons(self, replace: impl Fn(String) -> String) -> Self {
        match self {
            Self::Passed => Self::Passed,
            Self::Failed(reasons) => Self::Failed(reasons.into_iter().map(replace).collect()),
            Self::NotRun(reason) => Self::NotRun(replace(reason)),
            Self::Invalid(reason) => Self::Invalid(replace(reason)),
        }
    }
}
