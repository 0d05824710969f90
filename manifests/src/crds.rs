//! `CustomResourceDefinition` manifests.

use lockstep_shared_validation::Validator;
use serde_json::{Value, json};

use crate::names::Names;

/// Returns the CRD of a ruleset, with the same schema that the ruleset validates with.
pub(crate) fn crd(names: &Names, ruleset: &dyn Validator) -> Value {
    let mut crd = with_labels(names, ruleset);
    if converts(ruleset) {
        // The API server calls the webhook only once another version is served.
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {
                    "name": names.service,
                    "namespace": names.namespace,
                    "path": "/convert",
                    "port": 443,
                }},
            },
        });
    }
    crd
}

/// Returns the CRD for a cluster without conversion webhook. It contains only the storage version, because other
/// versions cannot be served there.
pub(crate) fn stored_version_only(names: &Names, ruleset: &dyn Validator) -> Value {
    let mut crd = with_labels(names, ruleset);
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.retain(|version| version["storage"] == true);
    }
    crd
}

fn with_labels(names: &Names, ruleset: &dyn Validator) -> Value {
    let mut crd = ruleset.crd().clone();
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/name": names.program});
    crd["metadata"]["annotations"] = kept();
    crd
}

/// Returns the annotations of objects that Argo CD and Flux must never delete.
pub(crate) fn kept() -> Value {
    json!({
        "argocd.argoproj.io/sync-options": "Delete=false,Prune=false",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
    })
}

/// Returns true if the kind has another version than the one that is validated.
pub(crate) fn converts(ruleset: &dyn Validator) -> bool {
    let versions = ruleset.crd()["spec"]["versions"].as_array();
    versions.is_some_and(|versions| versions.len() > 1)
}

/// Returns the name of the CRD.
pub(crate) fn name(ruleset: &dyn Validator) -> &str {
    ruleset.crd()["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
}

/// Returns the plural of a kind.
pub(crate) fn plural(ruleset: &dyn Validator) -> &Value {
    &ruleset.crd()["spec"]["names"]["plural"]
}
