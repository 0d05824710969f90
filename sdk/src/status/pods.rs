//! Deployments of an installation and their Pods.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use serde::Serialize;

use crate::installation::Installation;
use crate::status::section::Section;
use crate::status::visible::Visible;

/// Name of the container port of the controller's metrics.
const METRICS_PORT: &str = "metrics";

/// Deployment and its progress.
#[derive(Serialize)]
pub(crate) struct DeploymentStatus {
    pub(crate) name: String,
    pub(crate) desired: i32,
    pub(crate) ready: i32,
    pub(crate) updated: i32,
    pub(crate) images: Vec<String>,
}

/// Pod of an installation.
#[derive(Serialize)]
pub(crate) struct PodStatus {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    pub(crate) restarts: i32,
    /// Image of each container, as the container runtime reports it, or else as the Pod requests it.
    pub(crate) images: Vec<String>,
    /// Port of the controller's metrics.
    #[serde(skip)]
    pub(crate) metrics_port: Option<i32>,
}

/// Reports the Deployments.
pub(crate) fn deployments(
    found: Visible<Vec<Deployment>>,
    home: &str,
) -> Section<Visible<Vec<DeploymentStatus>>> {
    let mut problems = Vec::new();
    let content = found.map(|found| found.iter().map(deployment).collect::<Vec<_>>());
    if content.known().is_some_and(Vec::is_empty) {
        problems.push(format!(
            "no Deployment of this program exists in the namespace {home}: neither the webhook nor the controller runs"
        ));
    }
    for one in content.known().into_iter().flatten() {
        if one.ready < one.desired {
            problems.push(format!(
                "{} of {} Pods of the Deployment {} are ready",
                one.ready, one.desired, one.name
            ));
        } else if one.desired == 0 {
            problems.push(format!("the Deployment {} is scaled to zero", one.name));
        }
    }
    Section { content, problems }
}

fn deployment(deployment: &Deployment) -> DeploymentStatus {
    let spec = deployment.spec.as_ref();
    let status = deployment.status.clone().unwrap_or_default();
    let pod = spec.and_then(|spec| spec.template.spec.as_ref());
    let images = pod.into_iter().flat_map(|pod| &pod.containers);
    DeploymentStatus {
        name: deployment.name_any(),
        desired: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        ready: status.ready_replicas.unwrap_or_default(),
        updated: status.updated_replicas.unwrap_or_default(),
        images: unique(images.filter_map(|container| container.image.clone())),
    }
}

/// Lists the Pods.
pub(crate) async fn pods(
    installation: &Installation<'_>,
) -> Result<Visible<Vec<PodStatus>>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(installation.client.clone(), &installation.home);
    let found = pods.list(&installation.pods).await;
    // The Pod of a job, such as that of an uninstallation, runs neither webhook nor controller.
    let is_of_job = |pod: &&Pod| {
        pod.owner_references()
            .iter()
            .any(|owner| owner.kind == "Job")
    };
    Ok(Visible::of(found)?.map(|found| {
        let pods = found.items.iter().filter(|pod| !is_of_job(pod));
        pods.map(pod).collect()
    }))
}

fn pod(pod: &Pod) -> PodStatus {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let is_ready = |condition: &_| {
        let condition: &k8s_openapi::api::core::v1::PodCondition = condition;
        condition.type_ == "Ready" && condition.status == "True"
    };
    let running = status.container_statuses.unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    let reported = running
        .iter()
        .map(|container| container.image.clone())
        .filter(|image| !image.is_empty());
    let mut images = unique(reported);
    if images.is_empty() {
        images = unique(
            spec.containers
                .iter()
                .filter_map(|container| container.image.clone()),
        );
    }
    let ports = spec
        .containers
        .iter()
        .flat_map(|container| container.ports.iter().flatten());
    PodStatus {
        name: pod.name_any(),
        is_ready: conditions.iter().any(is_ready),
        restarts: running
            .iter()
            .map(|container| container.restart_count)
            .sum(),
        images,
        metrics_port: ports
            .filter(|port| port.name.as_deref() == Some(METRICS_PORT))
            .map(|port| port.container_port)
            .next(),
    }
}

fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.dedup();
    names
}
