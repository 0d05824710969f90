//! Whom the targets ask: `CloudDatabase` with its Rust rules, and a CRD that uses all of the schema
//! language.

use std::sync::{Arc, LazyLock};

// Only its feature is needed: it chooses the Kubernetes version.
use k8s_openapi as _;
use serde_json::Value;
use shared_validation::{CustomResource, Judge, Rulesets};

static PROBE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../cases/probe/crd.json")).expect("the CRD is JSON")
});

static ALL: LazyLock<Vec<Arc<dyn Judge>>> = LazyLock::new(|| {
    let database = cloud_database_rules::ruleset().expect("the rules of CloudDatabase compile");
    let probes = CustomResource::compile_served(&PROBE).expect("the CRD of Probe compiles");
    let probes = probes
        .into_iter()
        .map(|one| Arc::new(one) as Arc<dyn Judge>);
    std::iter::once(Arc::new(database) as Arc<dyn Judge>)
        .chain(probes)
        .collect()
});

/// Every judge, compiled once.
pub fn all() -> &'static [Arc<dyn Judge>] {
    &ALL
}

/// The same, as the gate takes them.
pub fn rulesets() -> Rulesets {
    all()
        .iter()
        .cloned()
        .fold(Rulesets::default(), Rulesets::with)
}
