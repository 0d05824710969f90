//! Kubernetes manifests of an installation, generated from the Rust types.

mod chart;
mod crd_protection;
mod crds;
mod deployment;
mod json_schema;
mod kustomization;
mod manifest;
mod marker;
pub mod names;
mod namespaced;
mod options;
mod rbac;
mod recognition;
mod separate_pods;
mod values_table;
mod webhook_configuration;

use crate::manifest::{manifest, schemas};

pub use crate::chart::{
    render as render_chart_files, render_initial as render_initial_chart_files,
};
pub use crate::manifest::Manifest;
pub use crate::options::InstallOptions;

/// Renders all files, in the order in which they are applied.
#[must_use]
pub fn render(install: &InstallOptions<'_>) -> Vec<Manifest> {
    render_at(install, install.namespaces.first().map(String::as_str))
}

/// Renders all files. Those of an installation that is limited to some namespaces are for a controller in the namespace
/// `home`, which may be another one, as with the chart.
#[must_use]
pub fn render_at(install: &InstallOptions<'_>, home: Option<&str>) -> Vec<Manifest> {
    let files = match home.filter(|_| !install.namespaces.is_empty()) {
        Some(home) => namespaced::render(install, home),
        None => of_cluster(install),
    };
    let files = files.into_iter();
    files.map(|file| file.with_header(&install.names)).collect()
}

fn of_cluster(install: &InstallOptions<'_>) -> Vec<Manifest> {
    // The webhook configurations come first. On apply this is safe: their failure policy is `Ignore` until the
    // webhook is known to work. On delete it avoids a configuration that refers to a webhook already deleted.
    let mut files = Vec::new();
    if install.webhook_changes_objects() {
        let mutating = webhook_configuration::mutating(install);
        files.push(manifest("mutating-webhook.yaml", &[mutating]));
    }
    if !install.no_webhook {
        let validating = webhook_configuration::validating(install);
        files.push(manifest("validating-webhook.yaml", &[validating]));
    }
    files.push(manifest(
        "namespace.yaml",
        &[deployment::namespace(&install.names)],
    ));
    files.push(manifest("rbac.yaml", &rbac::all(install)));
    if install.no_webhook {
        let controller = deployment::standalone_controller(install, &install.names.namespace);
        files.push(manifest("deployment.yaml", &[controller]));
    } else {
        files.extend(webhook_workload(install));
    }
    let kustomization = kustomization::kustomization(&files);
    files.push(manifest("kustomization.yaml", &[kustomization]));
    if !install.no_webhook {
        let controller = manifest("controller.yaml", &[separate_pods::controller(install)]);
        let component = manifest(
            "kustomization.yaml",
            &[separate_pods::kustomization(&install.names)],
        );
        files.extend([controller, component].map(|file| file.within("split")));
    }
    if !install.webhook_only {
        files.extend(crd_protection::bases(install));
    }
    files.extend(schemas(install));
    files
}

/// Renders the files of the Pods with the webhook.
fn webhook_workload(install: &InstallOptions<'_>) -> [Manifest; 3] {
    [
        manifest("service.yaml", &[deployment::service(&install.names)]),
        manifest(
            "disruption-budget.yaml",
            &[deployment::disruption_budget(&install.names)],
        ),
        manifest("deployment.yaml", &[deployment::deployment(install)]),
    ]
}
