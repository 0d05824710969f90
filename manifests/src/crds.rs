//! `CustomResourceDefinition`s.

use serde_json::{Value, json};
use shared_validation::Validator;

use crate::names;

/// The CRD of a ruleset: the very schema that the ruleset judges by.
pub(crate) fn crd(ruleset: &dyn Validator) -> Value {
    let mut crd = with_labels(ruleset);
    if converts(ruleset) {
        // Nobody is asked before another version is served.
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {
                    "name": names::SERVICE,
                    "namespace": names::NAMESPACE,
                    "path": "/convert",
                    "port": 443,
                }},
            },
        });
    }
    crd
}

/// The same for a cluster in which nobody converts: other versions cannot be served there.
pub(crate) fn stored_version_only(ruleset: &dyn Validator) -> Value {
    let mut crd = with_labels(ruleset);
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.retain(|version| version["storage"] == true);
    }
    crd
}

fn with_labels(ruleset: &dyn Validator) -> Value {
    let mut crd = ruleset.crd().clone();
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/name": names::APP});
    crd
}

/// Whether the kind has a version beside the one that is judged.
pub(crate) fn converts(ruleset: &dyn Validator) -> bool {
    let versions = ruleset.crd()["spec"]["versions"].as_array();
    versions.is_some_and(|versions| versions.len() > 1)
}

/// The name of the CRD.
pub(crate) fn name(ruleset: &dyn Validator) -> &str {
    ruleset.crd()["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
}
