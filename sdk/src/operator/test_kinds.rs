//! Two kinds for unit tests: `Lamp` is namespaced, `Cellar` is cluster-scoped.

use lockstep_controller::{ReconcileError, Reconciler, SyncReconciler, SyncRequest, SyncResponse};
use lockstep_shared_validation::ValidatedResource;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(crate) struct Lamp {}

#[derive(Deserialize)]
pub(crate) struct Cellar {}

impl ValidatedResource for Lamp {
    const GROUP: &'static str = "example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Lamp";

    fn crd() -> Value {
        crd("Lamp", "lamps", "Namespaced")
    }

    fn example() -> Value {
        json!({})
    }
}

impl ValidatedResource for Cellar {
    const GROUP: &'static str = "example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Cellar";

    fn crd() -> Value {
        crd("Cellar", "cellars", "Cluster")
    }

    fn example() -> Value {
        json!({})
    }
}

fn crd(kind: &str, plural: &str, scope: &str) -> Value {
    json!({"spec": {
        "group": "example.com",
        "names": {"kind": kind, "plural": plural},
        "scope": scope,
        "versions": [{"name": "v1", "served": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }})
}

/// Returns a reconciler of lamps that does nothing.
pub(crate) fn lamps() -> impl Reconciler<Kind = Lamp> {
    SyncReconciler::new(sync::<Lamp>)
}

/// Returns a reconciler of cellars that does nothing.
pub(crate) fn cellars() -> impl Reconciler<Kind = Cellar> {
    SyncReconciler::new(sync::<Cellar>)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is that of a SyncHandler"
)]
fn sync<K>(_: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
    Ok(SyncResponse::new())
}
