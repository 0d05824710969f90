//! Properties of the cluster that are read once.

use kube::core::GroupVersionKind;
use kube::{Client, discovery};

/// Returns true if the cluster has the API type `PodMonitor` of the Prometheus Operator.
///
/// # Errors
///
/// The API server did not answer.
pub async fn has_pod_monitors(client: &Client) -> Result<bool, kube::Error> {
    let type_ = GroupVersionKind::gvk("monitoring.coreos.com", "v1", "PodMonitor");
    match discovery::pinned_kind(client, &type_).await {
        Ok(_) => Ok(true),
        // Of an API group that does not exist, the answer is no `Status`.
        Err(kube::Error::Discovery(_)) => Ok(false),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}
