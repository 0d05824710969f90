//! Installation of the controller for some namespaces only, for users without rights beyond them. It has no
//! webhook, because webhook configurations are cluster-scoped.

use serde_json::Value;

use crate::{File, Install, crd_file, crds, file, kustomization, rbac, schemas, workload};

/// Renders the objects in the namespaces, and in the directory `cluster/` the cluster-scoped objects, which need a
/// cluster administrator.
pub(crate) fn render(install: &Install<'_>, home: &str) -> Vec<File> {
    let roles: Vec<Value> = install
        .namespaces
        .iter()
        .flat_map(|namespace| rbac::within(install, namespace, home))
        .collect();
    let mut files = vec![
        file(
            "rbac.yaml",
            &[vec![rbac::service_account(home)], roles].concat(),
        ),
        file("deployment.yaml", &[workload::loop_alone(install, home)]),
    ];
    let base = kustomization::kustomization(&files);
    files.push(file("kustomization.yaml", &[base]));
    let rulesets = install.rulesets.iter();
    let mut of_cluster: Vec<_> = rulesets
        .map(|ruleset| {
            crd_file(
                ruleset.as_ref(),
                &crds::stored_version_alone(ruleset.as_ref()),
            )
        })
        .collect();
    of_cluster.push(file("roles.yaml", &rbac::for_tenants(install)));
    let base = kustomization::kustomization(&of_cluster);
    of_cluster.push(file("kustomization.yaml", &[base]));
    files.extend(of_cluster.into_iter().map(|file| File {
        name: format!("cluster/{}", file.name),
        ..file
    }));
    files.extend(schemas(install));
    files
}
