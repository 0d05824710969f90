//! CRDs of kinds that only tests know.

use serde_json::{Value, json};
use shared_validation::with_standard_fields;

/// The CRD of a kind of `toys.example.com/v1`, with a status of its own.
///
/// The properties are those of the object: `spec`, and what an operator writes into `status`.
pub fn toy_crd(kind: &str, plural: &str, scope: &str, properties: &Value) -> Value {
    with_standard_fields(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.toys.example.com")},
        "spec": {
            "group": "toys.example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }],
        },
    }))
}
