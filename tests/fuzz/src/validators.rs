//! Validators under test: `CloudDatabase` with its Rust rules, and a CRD that uses the whole schema language.

use std::sync::{Arc, LazyLock};

// Only the feature of this crate is needed: it selects the Kubernetes version.
use k8s_openapi as _;
use lockstep_shared_validation::{CrdValidator, Validator, ValidatorRegistry};
use serde_json::Value;

static PROBE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../cases/probe/crd.json")).expect("the CRD is JSON")
});

static ALL: LazyLock<Vec<Arc<dyn Validator>>> = LazyLock::new(|| {
    let database =
        lockstep_cloud_database_api::ruleset().expect("the rules of CloudDatabase compile");
    let probes = CrdValidator::compile_served(&PROBE).expect("the CRD of Probe compiles");
    let probes = probes
        .into_iter()
        .map(|one| Arc::new(one) as Arc<dyn Validator>);
    std::iter::once(Arc::new(database) as Arc<dyn Validator>)
        .chain(probes)
        .collect()
});

/// Returns all validators. They are compiled once.
pub fn all() -> &'static [Arc<dyn Validator>] {
    &ALL
}

/// Returns all validators in the form that the webhook needs.
pub fn registry() -> ValidatorRegistry {
    all()
        .iter()
        .cloned()
        .fold(ValidatorRegistry::default(), ValidatorRegistry::register)
}
