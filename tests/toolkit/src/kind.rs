//! The kind of an operator under test: its loop, and its objects.

use std::sync::Arc;

use control_plane::Cluster;
use controller::{Controller, Metrics, Reconciler};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use shared_validation::{PolicyHandle, Ruleset, ValidatedResource};

use crate::install_crd;

/// A cluster that knows a kind.
///
/// # Panics
///
/// If it does not start, or does not take the CRD.
pub async fn cluster_with<K: ValidatedResource>() -> Cluster {
    let cluster = Cluster::start().await.expect("a cluster");
    install_crd(&cluster.client(), K::crd()).await;
    cluster
}

/// The loop of an operator, under the policy that nothing is said of.
///
/// # Panics
///
/// If the kind's rules do not compile.
pub fn operator<R: Reconciler>(client: Client, reconciler: R, metrics: &Metrics) -> Controller<R> {
    let ruleset = Ruleset::<R::Kind>::compile().expect("the rules");
    let policy = PolicyHandle::default();
    Controller::new(
        client,
        Arc::new(ruleset),
        reconciler,
        metrics.clone(),
        policy,
    )
}

/// The objects of a kind, in a namespace or, without one, in any or none.
pub fn objects<K: ValidatedResource>(
    client: Client,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(K::GROUP, K::VERSION, K::KIND);
    let crd = K::crd();
    let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Makes or changes an object, as its author: `content` is all of it but its metadata.
///
/// # Panics
///
/// If it is no JSON object, or the API server does not take it.
pub async fn tell<K: ValidatedResource>(api: &Api<DynamicObject>, name: &str, content: &Value) {
    let mut object = content.clone();
    object["apiVersion"] = format!("{}/{}", K::GROUP, K::VERSION).into();
    object["kind"] = K::KIND.into();
    object["metadata"] = json!({"name": name});
    let params = PatchParams::apply("author").force();
    let told = api.patch(name, &params, &Patch::Apply(object)).await;
    told.expect("it is stored");
}
