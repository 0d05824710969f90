//! Kubernetes manifests of an installation, generated from the Rust types.

mod crds;
mod deployment;
mod json_schema;
mod kustomization;
mod manifest;
pub mod names;
mod namespaced;
mod options;
mod rbac;
mod separate_pods;
mod webhook_configuration;

use crate::manifest::{crd_file, manifest, schemas};

pub use crate::manifest::Manifest;
pub use crate::options::InstallOptions;

/// Renders all files, in the order in which they are applied.
#[must_use]
pub fn render(install: &InstallOptions<'_>) -> Vec<Manifest> {
    if let [home, ..] = install.namespaces.as_slice() {
        return namespaced::render(install, home);
    }
    // The webhook configurations come first. On apply this is safe: their failure policy is `Ignore` until the
    // webhook is known to work. On delete it avoids a configuration that refers to a webhook already deleted.
    let mut files = Vec::new();
    if !install.webhook_only {
        let mutating = webhook_configuration::mutating(install.validators);
        files.push(manifest("mutating-webhook.yaml", &[mutating]));
    }
    let validating = webhook_configuration::validating(install.validators);
    files.push(manifest("validating-webhook.yaml", &[validating]));
    files.push(manifest("namespace.yaml", &[deployment::namespace()]));
    let validators = install.validators.iter().filter(|_| !install.webhook_only);
    files
        .extend(validators.map(|ruleset| crd_file(ruleset.as_ref(), &crds::crd(ruleset.as_ref()))));
    files.push(manifest("rbac.yaml", &rbac::all(install)));
    files.push(manifest("service.yaml", &[deployment::service()]));
    files.push(manifest(
        "disruption-budget.yaml",
        &[deployment::disruption_budget()],
    ));
    files.push(manifest(
        "deployment.yaml",
        &[deployment::deployment(install)],
    ));
    let kustomization = kustomization::kustomization(&files);
    files.push(manifest("kustomization.yaml", &[kustomization]));
    files.push(manifest(
        "split/controller.yaml",
        &[separate_pods::controller(install)],
    ));
    files.push(manifest(
        "split/kustomization.yaml",
        &[separate_pods::kustomization()],
    ));
    files.extend(schemas(install));
    files
}
