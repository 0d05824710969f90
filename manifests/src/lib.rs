//! Every YAML file a user applies, written from the Rust types.

mod crds;
mod editor;
mod kustomization;
pub mod names;
mod rbac;
mod split;
mod webhooks;
mod workload;

use serde_json::Value;
use shared_validation::{Judge, Rulesets};

/// A kind as the manifests see it.
pub struct Install<'a> {
    /// The kinds to install.
    pub rulesets: &'a Rulesets,
    /// RBAC rules that the operators need beyond their own kinds, as `PolicyRule`s.
    pub access: Vec<Value>,
    /// More arguments of the controller.
    pub controller_args: Vec<String>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name in the folder `manifests/`.
    pub name: String,
    /// The content.
    pub content: String,
}

/// Writes all files, in the order in which they are applied.
#[must_use]
pub fn render(install: &Install<'_>) -> Vec<File> {
    // Applied first, they are ignored until the gate has been seen to work; deleted first, no cluster is
    // left with a webhook that nobody serves.
    let mut files = vec![
        file(
            "mutating-webhook.yaml",
            &[webhooks::mutating(install.rulesets)],
        ),
        file(
            "validating-webhook.yaml",
            &[webhooks::validating(install.rulesets)],
        ),
        file("namespace.yaml", &[workload::namespace()]),
    ];
    files.extend(install.rulesets.iter().map(|ruleset| {
        let crd = crds::crd(ruleset.as_ref());
        let plural = ruleset.crd()["spec"]["names"]["plural"]
            .as_str()
            .unwrap_or_default();
        file(&format!("crd-{plural}.yaml"), &[crd])
    }));
    files.push(file("rbac.yaml", &rbac::all(install)));
    files.push(file("service.yaml", &[workload::service()]));
    files.push(file(
        "disruption-budget.yaml",
        &[workload::disruption_budget()],
    ));
    files.push(file("deployment.yaml", &[workload::deployment(install)]));
    let kustomization = kustomization::kustomization(&files);
    files.push(file("kustomization.yaml", &[kustomization]));
    files.push(file("split/controller.yaml", &[split::controller(install)]));
    files.push(file("split/kustomization.yaml", &[split::kustomization()]));
    files.extend(
        install
            .rulesets
            .iter()
            .map(|ruleset| schema(ruleset.as_ref())),
    );
    files
}

/// The JSON Schema of a kind, for editors.
fn schema(ruleset: &dyn Judge) -> File {
    let (group, version, kind) = (ruleset.group(), ruleset.version(), ruleset.kind());
    let schema = editor::json_schema(ruleset.crd(), group, version, kind);
    File {
        name: format!("schemas/{}_{version}.json", kind.to_lowercase()),
        content: format!("{schema:#}\n"),
    }
}

/// The JSON objects of a file.
fn file(name: &str, objects: &[Value]) -> File {
    let documents: Vec<_> = objects
        .iter()
        .map(|object| serde_saphyr::to_string(object).expect("a JSON object is YAML"))
        .collect();
    let content = format!(
        "# Written by `lockstep manifests`; do not edit.\n{}",
        documents.join("---\n")
    );
    File {
        name: name.to_owned(),
        content,
    }
}
