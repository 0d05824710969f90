//! Installation of the controller for some namespaces only, for users without rights beyond them. It has no
//! webhook, because webhook configurations are cluster-scoped.

use serde_json::Value;

use crate::manifest::{Manifest, crd_file, manifest, schemas};
use crate::options::InstallOptions;
use crate::{crds, deployment, kustomization, rbac};

/// Renders the objects in the namespaces, and in the directory `cluster/` the cluster-scoped objects, which need a
/// cluster administrator.
pub(crate) fn render(install: &InstallOptions<'_>, home: &str) -> Vec<Manifest> {
    let roles: Vec<Value> = install
        .namespaces
        .iter()
        .flat_map(|namespace| rbac::within(install, namespace, home))
        .collect();
    let mut files = vec![
        manifest(
            "rbac.yaml",
            &[vec![rbac::service_account(home)], roles].concat(),
        ),
        manifest(
            "deployment.yaml",
            &[deployment::standalone_controller(install, home)],
        ),
    ];
    let base = kustomization::kustomization(&files);
    files.push(manifest("kustomization.yaml", &[base]));
    let validators = install.validators.iter();
    let mut of_cluster: Vec<_> = validators
        .map(|ruleset| {
            crd_file(
                ruleset.as_ref(),
                &crds::stored_version_only(ruleset.as_ref()),
            )
        })
        .collect();
    of_cluster.push(manifest("roles.yaml", &rbac::tenant_roles(install)));
    let base = kustomization::kustomization(&of_cluster);
    of_cluster.push(manifest("kustomization.yaml", &[base]));
    files.extend(of_cluster.into_iter().map(|file| Manifest {
        name: format!("cluster/{}", file.name),
        ..file
    }));
    files.extend(schemas(install));
    files
}
