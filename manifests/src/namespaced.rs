//! The loop in some namespaces, for who has no right beyond them. There is no gate: its configuration is the
//! cluster's.

use serde_json::Value;

use crate::{File, Install, crd_file, file, kustomization, rbac, schemas, workload};

/// Everything in the namespaces; apart from it the CRDs, for whoever may apply them.
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
    let mut crds: Vec<_> = rulesets.map(|ruleset| crd_file(ruleset.as_ref())).collect();
    let base = kustomization::kustomization(&crds);
    crds.push(file("kustomization.yaml", &[base]));
    files.extend(crds.into_iter().map(|crd| File {
        name: format!("crds/{}", crd.name),
        ..crd
    }));
    files.extend(schemas(install));
    files
}
