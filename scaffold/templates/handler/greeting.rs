//! Greeting: a text that is stored in a `ConfigMap`.

mod resource;
mod rules;
mod sync;

use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_sdk::controller::{OwnedType, Reconciler, SyncReconciler};

pub use resource::{Greeting, GreetingSpec, GreetingStatus};

/// Returns the operator.
pub fn operator() -> impl Reconciler<Kind = Greeting> {
    SyncReconciler::new(sync::sync).owns([OwnedType::namespaced::<ConfigMap>()])
}
