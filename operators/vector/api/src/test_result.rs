//! Results of the tests of a configuration.

use lockstep_vector_config::Catalogue;
use serde_json::Value;

/// Function that runs the tests of a configuration, and returns one result for each.
pub type RunTests = fn(&Catalogue, &Value) -> Vec<NamedResult>;

/// Result of a test with this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedResult {
    /// Name of the test.
    pub name: String,
    /// Result.
    pub result: TestResult,
}

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
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
