//! Deletion of the parts of an installation, in order.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PropagationPolicy};
use tokio::time::Instant;

use crate::installation::Installation;
use crate::installation::lease::Leader;
use crate::installation::manifest_object::{ExistingObject, ManifestObject};
use crate::printer;

/// Interval at which it is checked whether an object still exists.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Step in which a part of an installation is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// First, so that no configuration refers to a webhook that no longer runs.
    WebhookConfigurations,
    /// Before the rights: a controller needs them until it ends.
    Deployments,
    Others,
    Rights,
    /// After the controllers, which would create them again.
    State,
    Namespace,
    /// Last, and only on request.
    Crds,
}

impl Step {
    pub(crate) fn of(object: &ManifestObject) -> Self {
        match object.kind.as_str() {
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                Self::WebhookConfigurations
            }
            "Deployment" => Self::Deployments,
            "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" | "ServiceAccount" => {
                Self::Rights
            }
            "Secret" | "Lease" => Self::State,
            "Namespace" => Self::Namespace,
            // The policies protect the CRDs for as long as these exist.
            "CustomResourceDefinition"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding" => Self::Crds,
            _ => Self::Others,
        }
    }
}

/// Deletes the parts that `is_chosen` accepts, in their order, and waits until each no longer exists.
pub(crate) async fn delete(
    installation: &Installation<'_>,
    parts: &[ExistingObject],
    is_chosen: impl Fn(Step) -> bool,
    deadline: Instant,
) -> anyhow::Result<()> {
    for part in parts
        .iter()
        .filter(|part| is_chosen(Step::of(&part.manifest)))
    {
        if part.manifest.kind == "Namespace"
            && let Some(user) = foreign_pod(installation).await?
        {
            printer::print(&format!(
                "the Namespace {} stays: the Pod {user} in it is not part of the installation\n",
                part.manifest.name
            ))?;
            continue;
        }
        delete_part(part, deadline).await?;
    }
    Ok(())
}

/// Returns a Pod in the namespace of the installation, once its own Pods are gone.
async fn foreign_pod(installation: &Installation<'_>) -> anyhow::Result<Option<String>> {
    let pods: Api<Pod> = Api::namespaced(installation.client.clone(), &installation.home);
    let found = pods.list(&ListParams::default().limit(1)).await;
    let found = found.context("cannot list the Pods in the namespace of the installation")?;
    Ok(found.items.first().map(|pod| pod.name_any()))
}

/// Deletes an object and waits until it no longer exists.
pub(crate) async fn delete_part(part: &ExistingObject, deadline: Instant) -> anyhow::Result<()> {
    let ManifestObject { kind, name, .. } = &part.manifest;
    let params = DeleteParams {
        // With this policy, a Deployment exists until its Pods are gone.
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    match part.api.delete(name, &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        // Another deletion of a namespace is under way.
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        deleted => drop(deleted.with_context(|| format!("cannot delete the {kind} {name}"))?),
    }
    while let Some(found) = part.api.get_opt(name).await? {
        if Instant::now() >= deadline {
            let conditions = &found.data["status"]["conditions"];
            let finalizers = found.finalizers().join(", ");
            anyhow::bail!(
                "timed out waiting for the deletion of the {kind} {name}: finalizers [{finalizers}], conditions {conditions}; see `kubectl get {} {name} -o yaml`",
                part.resource.plural
            );
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    printer::print(&format!("deleted the {kind} {name}\n"))
}

/// Waits until no controller holds the Lease any more.
pub(crate) async fn wait_until_no_leader(
    installation: &Installation<'_>,
    deadline: Instant,
) -> anyhow::Result<()> {
    loop {
        let leader = Leader::read(installation).await?;
        let Leader::Held { holder, .. } = leader else {
            return Ok(());
        };
        anyhow::ensure!(
            Instant::now() < deadline,
            "timed out waiting for the controllers to stop: {holder} still renews the Lease; stop it and repeat the command"
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controllers_keep_their_rights_until_they_have_ended() {
        assert!(Step::WebhookConfigurations < Step::Deployments);
        assert!(Step::Deployments < Step::Rights && Step::Rights < Step::Namespace);
        assert!(Step::Deployments < Step::State && Step::Namespace < Step::Crds);
    }
}
