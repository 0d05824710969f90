//! `CustomResourceDefinition`s.

use serde_json::{Value, json};
use shared_validation::Judge;

use crate::names;

/// The CRD of a ruleset: the very schema that the ruleset judges by.
pub(crate) fn crd(ruleset: &dyn Judge) -> Value {
    let mut crd = ruleset.crd().clone();
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/name": names::APP});
    crd
}
