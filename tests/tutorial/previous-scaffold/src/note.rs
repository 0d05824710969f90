//! Note: a text that is stored in a `ConfigMap`.

mod resource;
mod rules;
mod sync;

use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_sdk::controller::{OwnedType, Reconciler, SyncReconciler};

pub use resource::{Note, NoteSpec, NoteStatus};

/// Returns the operator.
pub fn operator() -> impl Reconciler<Kind = Note> {
    SyncReconciler::new(sync::sync).owns([OwnedType::namespaced::<ConfigMap>()])
}
