//! Installation of the controller for some namespaces only, for users without rights beyond them. It has no
//! webhook, because webhook configurations are cluster-scoped.

use serde_json::Value;

use crate::kustomization::base;
use crate::manifest::{Manifest, manifest, schemas};
use crate::options::InstallOptions;
use crate::{crd_protection, deployment, kustomization, rbac};

/// Renders the objects in the namespaces, and in the directories `crds/`, `crd-protection/` and `cluster/` the
/// cluster-scoped objects, which need a cluster administrator.
pub(crate) fn render(install: &InstallOptions<'_>, home: &str) -> Vec<Manifest> {
    let mut roles: Vec<Value> = install
        .namespaces
        .iter()
        .flat_map(|namespace| rbac::within(install, namespace, home))
        .collect();
    if !install.namespaces.iter().any(|namespace| namespace == home) {
        roles.extend(rbac::at_home(install, home));
    }
    let mut files = vec![
        manifest(
            "rbac.yaml",
            &[vec![rbac::service_account(&install.names, home)], roles].concat(),
        ),
        manifest(
            "deployment.yaml",
            &[deployment::standalone_controller(install, home)],
        ),
    ];
    let kustomization = kustomization::kustomization(&files);
    files.push(manifest("kustomization.yaml", &[kustomization]));
    files.extend(crd_protection::bases(install));
    let roles = manifest("roles.yaml", &rbac::tenant_roles(install));
    files.extend(base("cluster", vec![roles]));
    files.extend(schemas(install));
    files
}
