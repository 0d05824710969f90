//! Refresh of the Secrets that Pods have mounted.
//!
//! ```text
//! published Secrets ─► their versions ─► differ from those of the last refresh? ─► annotation of each Pod
//! ```
//!
//! A kubelet updates a mounted Secret when it next synchronizes the Pod, about once a minute. It does so at once after an
//! annotation of the Pod has changed
//! (<https://kubernetes.io/docs/tasks/configure-pod-container/configure-pod-configmap/#mounted-configmaps-are-updated-automatically>).
//! The Pod template does not change, so that no Pod is restarted. Pods that start later mount the current Secrets anyway.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// Annotation of a Pod with the resource versions of its Secrets. A digest of the content would let users who may read Pods
/// guess the values of Secrets.
const ANNOTATION: &str = "observability.kaasops.io/secret-versions";

/// Maximum number of Pods of a workload that are refreshed after a publication. For each of them, the API server stores
/// the Pod and notifies the clients that watch it.
const MAX_PODS: usize = 500;

/// Maximum number of notifications that the API server sends to the workload itself after a publication: each source that
/// reads the logs of a node watches the Pods of the node, and gets the whole changed Pod.
const MAX_NOTIFICATIONS: usize = 10_000;

/// Number of Pods that are patched at the same time.
const CONCURRENCY: usize = 8;

/// Result of the refresh of a workload's Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refresh {
    /// All Pods are refreshed that still exist.
    Done,
    /// The API server does not permit it, and would not the next time.
    Denied,
    /// Some Pods are to be refreshed again.
    Incomplete,
}

/// Returns the permissions for the refresh.
pub(crate) fn rbac_rule() -> Value {
    json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]})
}

/// Returns the resource versions of the published Secrets among the desired children, if they differ from those of the last
/// refresh. None also while a Secret does not have its desired content: it is about to be written, and the Pods must
/// not mount the present one.
pub(crate) fn new_versions<'a>(
    desired: impl IntoIterator<Item = &'a Value>,
    children: &[&DynamicObject],
    refreshed: Option<&str>,
) -> Option<String> {
    let mut versions = Vec::new();
    let mut are_published = true;
    let secrets = desired.into_iter();
    for secret in secrets.filter(|child| child["kind"] == "Secret") {
        let of = |field: &str| secret["metadata"][field].as_str();
        let observed = children.iter().find(|child| {
            let types = child.types.as_ref();
            types.is_some_and(|types| types.kind == "Secret")
                && child.metadata.name.as_deref() == of("name")
                && child.metadata.namespace.as_deref() == of("namespace")
        })?;
        are_published &= observed.data["data"] == secret["data"];
        versions.push(observed.metadata.resource_version.as_deref()?);
    }
    let versions = versions.join("-");
    (are_published && !versions.is_empty() && refreshed != Some(&versions)).then_some(versions)
}

/// Returns the number of Pods that are refreshed, each of which runs the sources of a configuration.
pub(crate) fn max_pods(configuration: &Value) -> usize {
    let sources = configuration["sources"].as_object().into_iter().flatten();
    let watching = sources.filter(|(_, source)| source["type"] == "kubernetes_logs");
    MAX_PODS.min(MAX_NOTIFICATIONS / watching.count().max(1))
}

/// Sets the annotation of up to `max_pods` Pods with these labels to the versions of their Secrets. A Pod that has it is
/// not patched.
pub(crate) async fn refresh(
    client: &Client,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    versions: &str,
    max_pods: usize,
) -> Refresh {
    if max_pods == 0 {
        return Refresh::Done;
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let labels: Vec<_> = labels
        .iter()
        .map(|(key, it)| format!("{key}={it}"))
        .collect();
    let params = ListParams::default()
        .labels(&labels.join(","))
        .limit(u32::try_from(max_pods).unwrap_or(u32::MAX));
    let found = match pods.list_metadata(&params).await {
        Ok(found) => found.items,
        Err(error) => return failure(&error, namespace),
    };
    let patch = json!({"metadata": {"annotations": {ANNOTATION: versions}}});
    let patches = outdated(&found, versions).into_iter().map(|pod| {
        let (pods, patch) = (pods.clone(), Patch::Merge(patch.clone()));
        async move {
            let params = PatchParams::default();
            let patched = pods.patch_metadata(&pod, &params, &patch).await;
            patched.map_or_else(|error| failure(&error, namespace), |_| Refresh::Done)
        }
    });
    let results: Vec<_> = stream::iter(patches)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    results.into_iter().max().unwrap_or(Refresh::Done)
}

/// Returns the names of the Pods without the annotation. A Pod that is being deleted needs no new configuration.
fn outdated(pods: &[PartialObjectMeta<Pod>], versions: &str) -> Vec<String> {
    let outdated = pods.iter().filter(|pod| {
        let annotation = pod.annotations().get(ANNOTATION);
        annotation.is_none_or(|it| it != versions) && pod.metadata.deletion_timestamp.is_none()
    });
    outdated.map(ResourceExt::name_any).collect()
}

/// Logs an error, and returns the result. The deletion of a Pod is none.
fn failure(error: &kube::Error, namespace: &str) -> Refresh {
    let result = result_of(error);
    match result {
        Refresh::Done => {}
        Refresh::Denied => tracing::warn!(
            %error, namespace,
            "Pods cannot be refreshed, so that changes arrive with the period of the kubelets; grant `list` and `patch` on pods"
        ),
        Refresh::Incomplete => tracing::warn!(%error, namespace, "Pods cannot be refreshed now"),
    }
    result
}

fn result_of(error: &kube::Error) -> Refresh {
    match error {
        kube::Error::Api(status) if status.is_not_found() => Refresh::Done,
        // A policy may reject the change, too.
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) => Refresh::Denied,
        _ => Refresh::Incomplete,
    }
}

#[cfg(test)]
mod tests;
