//! Results of the tests of a pipeline.

use lockstep_vector_config::Catalogue;
use serde_json::Value;

/// Function that runs the tests of a configuration, and returns one result for each.
pub type RunTests = fn(&Catalogue, &Value) -> Vec<TestResult>;

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestResult {
    /// It passed.
    Passed,
    /// It failed, or its definition is wrong, for this reason.
    Failed(String),
    /// Only Vector can run it, for this reason.
    NotRun(String),
}
