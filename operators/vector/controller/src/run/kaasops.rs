//! Traces of the operator of kaasops on a workload that it ran before.

use std::fmt::Debug;

use flate2::Crc;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use lockstep_controller::ReconcileError;
use lockstep_vector_api::VectorAggregator;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Finalizer that it sets on each `VectorAggregator`.
const FINALIZER: &str = "vectoraggregator.observability.kaasops.io/finalizer";

/// Returns the value of `status.LastAppliedGlobalConfigHash`: where it finds another one, it restarts all Pods.
pub(crate) fn global_options_checksum(config: &Value) -> i64 {
    let options = json!({"ExpireMetricsSecs": config.get("expire_metrics_secs")});
    let mut checksum = Crc::new();
    checksum.update(options.to_string().as_bytes());
    i64::from(checksum.sum())
}

/// Does on the deletion of a workload what the finalizer of that operator waits for: deletes the cluster-scoped objects
/// that it has created, and removes the finalizer. No other client would, and the workload would never be gone.
///
/// # Errors
///
/// The API server did not answer, or the workload has changed.
pub(crate) async fn finish(client: &Client, workload: &Value) -> Result<(), ReconcileError> {
    let Ok(workload) = serde_json::from_value::<Deleted>(workload.clone()) else {
        return Ok(());
    };
    let metadata = workload.metadata;
    let mut finalizers = metadata.finalizers.unwrap_or_default();
    let Some(at) = finalizers.iter().position(|name| name == FINALIZER) else {
        return Ok(());
    };
    finalizers.remove(at);
    let of = |value: Option<String>| value.unwrap_or_default();
    let (name, uid) = (of(metadata.name), of(metadata.uid));
    let finished = async {
        for component in ["aggregator", "event-collector"] {
            let role = format!("{name}-{component}");
            delete::<ClusterRoleBinding>(client, &role, &uid).await?;
            delete::<ClusterRole>(client, &role, &uid).await?;
        }
        let namespace = of(metadata.namespace);
        let workloads: Api<VectorAggregator> = Api::namespaced(client.clone(), &namespace);
        let patch = json!({"metadata": {
            "finalizers": finalizers, "resourceVersion": metadata.resource_version, "uid": uid,
        }});
        let params = PatchParams::default();
        workloads
            .patch_metadata(&name, &params, &Patch::Merge(patch))
            .await
    };
    match finished.await {
        Ok(_) => Ok(()),
        Err(error) => Err(ReconcileError::Transient {
            reason: "FinalizerOfPredecessor",
            message: format!("the finalizer `{FINALIZER}` cannot be removed: {error}"),
        }),
    }
}

/// Metadata of a workload, which may be invalid otherwise.
#[derive(serde::Deserialize)]
struct Deleted {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
}

/// Deletes a cluster-scoped object of a workload. In contrast to a namespaced one, the garbage collector keeps it.
async fn delete<T>(client: &Client, name: &str, owner_uid: &str) -> Result<(), kube::Error>
where
    T: Resource<Scope = ClusterResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<T> = Api::all(client.clone());
    let Some(live) = api.get_metadata_opt(name).await? else {
        return Ok(());
    };
    if !live.owner_references().iter().any(|it| it.uid == owner_uid) {
        return Ok(());
    }
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: live.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values were read from the status of workloads that the operator of kaasops ran.
    #[test]
    fn the_checksum_of_global_options_is_the_one_of_the_operator_of_kaasops() {
        for (config, expected) in [
            (json!({"data_dir": "/vector-data-dir"}), 2_055_584_866),
            (json!({"expire_metrics_secs": 300}), 3_540_258_862),
        ] {
            assert_eq!(global_options_checksum(&config), expected, "{config}");
        }
    }
}
