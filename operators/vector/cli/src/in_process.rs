//! Compilation and tests of VRL programs in this process, for systems without the resource limits of Unix. Users of these systems
//! validate their own files. The webhook and the controller, which compile the programs of others, run on Linux.

use lockstep_vector_api::{Catalogue, Compiler, InProcessCompiler, NamedResult};
use serde_json::Value;

use crate::flow::FlowConfig;
use crate::unit_tests::run_all;

/// Returns a compiler for the programs of a configuration.
pub(crate) fn compiler() -> Box<dyn Compiler> {
    InProcessCompiler::boxed()
}

/// Returns the same compiler: without processes there is no deadline.
pub(crate) fn compiler_with_deadline() -> Box<dyn Compiler> {
    compiler()
}

/// Returns the same compiler: without processes there are no limits of time and memory.
pub(crate) fn offline_compiler() -> Box<dyn Compiler> {
    compiler()
}

/// Runs the tests of a configuration.
#[must_use]
pub fn run_tests(catalogue: &Catalogue, config: &Value) -> Vec<NamedResult> {
    let mut results = Vec::new();
    run_all(&FlowConfig::new(catalogue, config), |result| {
        results.push(result)
    });
    results
}
