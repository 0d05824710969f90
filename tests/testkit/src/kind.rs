//! Kind of an operator under test: its controller and its objects.

use std::sync::Arc;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use lockstep_controller::{Controller, Metrics, Reconciler};
use lockstep_envtest::Cluster;
use lockstep_shared_validation::{PolicyHandle, Ruleset, ValidatedResource};
use serde_json::{Value, json};

use crate::install_crd;

/// Starts a cluster and installs the CRD of a kind.
///
/// # Panics
///
/// If the cluster does not start or does not store the CRD.
///
/// ```no_run
/// use lockstep_shared_validation::ValidatedResource;
/// use lockstep_test::{apply, cluster_with, objects};
///
/// async fn the_example_is_stored<K: ValidatedResource>() {
///     let cluster = cluster_with::<K>().await;
///     let all = objects::<K>(cluster.client(), Some("default"));
///     apply::<K>(&all, "example", &K::example()).await;
/// }
/// ```
pub async fn cluster_with<K: ValidatedResource>() -> Cluster {
    let cluster = Cluster::start().await.expect("the cluster starts");
    install_crd(&cluster.client(), K::crd()).await;
    cluster
}

/// Returns the controller of an operator under the default policy.
///
/// # Panics
///
/// If the rules of the kind do not compile.
pub fn operator<R: Reconciler>(client: Client, reconciler: R, metrics: &Metrics) -> Controller<R> {
    let ruleset = Ruleset::<R::Kind>::compile().expect("the rules compile");
    let policy = PolicyHandle::default();
    Controller::new(
        "operator",
        client,
        Arc::new(ruleset),
        reconciler,
        metrics.clone(),
        policy,
    )
}

/// Returns the API of a kind: in one namespace or, without one, in all namespaces or at cluster scope.
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

/// Creates or changes an object by server-side apply, as its user would. `content` is the object without metadata.
///
/// # Panics
///
/// If the content is not a JSON object or the API server does not store it.
pub async fn apply<K: ValidatedResource>(api: &Api<DynamicObject>, name: &str, content: &Value) {
    let mut object = content.clone();
    object["apiVersion"] = format!("{}/{}", K::GROUP, K::VERSION).into();
    object["kind"] = K::KIND.into();
    object["metadata"] = json!({"name": name});
    let params = PatchParams::apply("author").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.expect("the API server stores the object");
}
