//! Properties of the cluster that are read once, when the controller starts.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use k8s_openapi::api::apps::v1::Deployment;
use kube::core::GroupVersionKind;
use kube::{Api, Client, discovery};
use lockstep_controller::SecretAccess;

use crate::owned::ControllerPods;
use crate::run::follow::reload::WorkloadPods;
use crate::run::workload_namespaces::WorkloadNamespaces;

/// Time for which a request is repeated. It is longer than the restart of an API server.
const PATIENCE: Duration = Duration::from_mins(1);

/// Name of the container of the controller.
const CONTROLLER: &str = "controller";

/// Returns true if the cluster has the API type `PodMonitor` of the Prometheus Operator.
///
/// # Errors
///
/// The API server has not answered for a minute.
pub async fn has_pod_monitors(client: &Client) -> Result<bool, kube::Error> {
    let type_ = GroupVersionKind::gvk("monitoring.coreos.com", "v1", "PodMonitor");
    let discovered = || async {
        match discovery::pinned_kind(client, &type_).await {
            Ok(_) => Ok(true),
            // Of an API group that does not exist, the answer is no `Status`.
            Err(kube::Error::Discovery(_)) => Ok(false),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    };
    discovered.retry(delays()).await
}

/// Returns the delays of repeated requests.
fn delays() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5))
        .without_max_times()
        .with_total_delay(Some(PATIENCE))
}

/// Image with this program, the Pods of the controller, and the namespaces of workloads.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// Image with this program. None: no data is moved when components get other names, no Pod keeps running for checks, and the
    /// event collector is that of kaasops.
    pub image: Option<String>,
    /// Pods of the controller. None: every Pod may connect to one that keeps running for checks, which asks for a token.
    pub pods: Option<ControllerPods>,
    /// Namespaces in which workloads may take pipelines or data of other namespaces.
    pub workload_namespaces: WorkloadNamespaces,
    /// Names by which an administrator grants the rights on Secrets.
    pub secret_access: SecretAccess,
    /// Time after a publication after which a Pod that still loads it is reported. None: five minutes.
    pub reload_timeout: Option<Duration>,
    /// Metric of the Pods of the workloads by what is known of their configuration.
    pub workload_pods: WorkloadPods,
}

/// Returns the installation of a controller that runs in a Pod, from the Deployment of the Pod. It is empty if the Pod
/// belongs to no Deployment that the controller may read.
///
/// # Errors
///
/// The API server has not answered for a minute. Without the answer, data would not be moved that is to be moved.
pub async fn controller_installation(
    client: &Client,
    namespace: &str,
    pod: &str,
) -> Result<Installation, kube::Error> {
    // The name of the Pod ends with the hashes of the template and of the Pod.
    let Some(name) = pod.rsplitn(3, '-').nth(2) else {
        return Ok(Installation::default());
    };
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let read = || async {
        match deployments.get_opt(name).await {
            Ok(found) => Ok(
                found.map_or_else(Installation::default, |deployment| Installation {
                    image: image_in(&deployment),
                    pods: pods_of(namespace, &deployment),
                    ..Installation::default()
                }),
            ),
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                tracing::info!(error = %status, deployment = name, "the image of the controller is not known");
                Ok(Installation::default())
            }
            Err(error) => Err(error),
        }
    };
    read.retry(delays()).await
}

fn image_in(deployment: &Deployment) -> Option<String> {
    let template = &deployment.spec.as_ref()?.template;
    let mut containers = template.spec.as_ref()?.containers.iter();
    let controller = containers.find(|it| it.name == CONTROLLER)?;
    controller.image.clone()
}

fn pods_of(namespace: &str, deployment: &Deployment) -> Option<ControllerPods> {
    let selector = &deployment.spec.as_ref()?.selector;
    Some(ControllerPods {
        namespace: namespace.to_owned(),
        labels: selector.match_labels.clone()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_image_is_the_one_of_the_controller() {
        let deployment = |containers| {
            let spec = json!({"selector": {}, "template": {"spec": {"containers": containers}}});
            serde_json::from_value(json!({"metadata": {}, "spec": spec})).expect("a Deployment")
        };
        let webhook = json!({"name": "webhook", "image": "a"});
        let controller = json!({"name": "controller", "image": "b"});
        let found = image_in(&deployment(json!([webhook, controller])));
        assert_eq!(found.as_deref(), Some("b"));
        assert_eq!(image_in(&deployment(json!([webhook]))), None);
    }

    #[test]
    fn the_pods_of_the_controller_are_those_that_its_deployment_selects() {
        let labels = json!({"app.kubernetes.io/name": "lockstep"});
        let spec = json!({"selector": {"matchLabels": labels}, "template": {}});
        let deployment = json!({"metadata": {}, "spec": spec});
        let deployment = serde_json::from_value(deployment).expect("a Deployment");
        let pods = pods_of("system", &deployment).expect("Pods");
        assert_eq!(
            (pods.namespace.as_str(), json!(pods.labels)),
            ("system", labels)
        );
    }
}
