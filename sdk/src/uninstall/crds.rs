//! Deletion of the CRDs of the installed kinds.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use crate::installation::Installation;
use crate::installation::manifest_object::ExistingObject;
use crate::installation::objects::{self, NamespaceSelection};
use crate::printer;
use crate::uninstall::teardown::delete_part;

/// Annotation that allows the deletion of a CRD, which the shipped admission policy denies otherwise.
const ALLOW_DELETION: &str = "lockstep.dev/allow-deletion";

/// Deletes the CRDs, then the policies that protect them.
///
/// # Errors
///
/// An object of one of the kinds exists in any namespace. Nothing is deleted then.
pub(crate) async fn delete(
    installation: &Installation<'_>,
    crds: &[ExistingObject],
    deadline: Instant,
) -> anyhow::Result<()> {
    for (kind, ruleset) in installation.kinds.iter() {
        let left =
            objects::list(installation, ruleset.as_ref(), NamespaceSelection::Cluster).await?;
        if let Some(object) = left.first() {
            anyhow::bail!(
                "the CRDs stay: {} objects of {} exist, such as {}; their deletion would delete all of them",
                left.len(),
                kind.kind,
                object.shown()
            );
        }
    }
    let is_crd = |part: &&ExistingObject| part.manifest.kind == "CustomResourceDefinition";
    for crd in crds.iter().filter(is_crd) {
        let patch = json!({"metadata": {"annotations": {ALLOW_DELETION: "true"}}});
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        match crd.api.patch(&crd.manifest.name, &params, &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            patched => drop(patched?),
        }
        delete_part(crd, deadline).await?;
    }
    for policy in crds.iter().filter(|part| !is_crd(part)) {
        delete_part(policy, deadline).await?;
    }
    printer::print("the CRDs are deleted\n")
}
