//! Kubernetes manifests of an installation, generated from the Rust types.

mod crds;
mod deployment;
mod json_schema;
mod kustomization;
pub mod names;
mod namespaced;
mod rbac;
mod separate_pods;
mod webhook_configuration;

use serde_json::Value;
use shared_validation::{Validator, ValidatorRegistry};

/// Options of an installation.
pub struct InstallOptions<'a> {
    /// Kinds to install.
    pub validators: &'a ValidatorRegistry,
    /// RBAC rules that the operators need besides those for their own kinds, as `PolicyRule`s.
    pub rbac_rules: Vec<Value>,
    /// Additional arguments of the controller.
    pub controller_args: Vec<String>,
    /// Namespaces that the installation is limited to. It runs in the first one. If empty, it covers the whole
    /// cluster.
    pub namespaces: Vec<String>,
    /// If true, only the webhook is installed. Another installation owns the CRDs, the objects and their statuses,
    /// and this one does not modify them.
    pub webhook_only: bool,
}

/// Generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Path relative to the directory `manifests/`.
    pub name: String,
    /// Content of the file.
    pub content: String,
}

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

/// Returns the JSON Schemas of all kinds, for editors.
fn schemas(install: &InstallOptions<'_>) -> impl Iterator<Item = Manifest> {
    let validators = install.validators.iter();
    validators.map(|ruleset| schema(ruleset.as_ref()))
}

/// Returns the file with the CRD of a kind.
fn crd_file(ruleset: &dyn Validator, crd: &Value) -> Manifest {
    let plural = ruleset.crd()["spec"]["names"]["plural"].as_str();
    let name = format!("crd-{}.yaml", plural.unwrap_or_default());
    manifest(&name, std::slice::from_ref(crd))
}

/// Returns the file with the JSON Schema of a kind.
fn schema(ruleset: &dyn Validator) -> Manifest {
    let (group, version, kind) = (ruleset.group(), ruleset.version(), ruleset.kind());
    let schema = json_schema::json_schema(ruleset.crd(), group, version, kind);
    Manifest {
        name: format!("schemas/{}_{version}.json", kind.to_lowercase()),
        content: format!("{schema:#}\n"),
    }
}

/// Returns a YAML file with these objects.
fn manifest(name: &str, objects: &[Value]) -> Manifest {
    let documents: Vec<_> = objects
        .iter()
        .map(|object| serde_saphyr::to_string(object).expect("JSON is valid YAML"))
        .collect();
    let content = format!(
        "# Written by `lockstep manifests`; do not edit.\n{}",
        documents.join("---\n")
    );
    Manifest {
        name: name.to_owned(),
        content,
    }
}
