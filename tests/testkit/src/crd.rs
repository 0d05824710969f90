//! CRDs of kinds that exist only in tests.

use lockstep_shared_validation::with_standard_fields;
use serde_json::{Value, json};

/// Returns the CRD of a kind of `toys.example.com/v1` with a status subresource.
///
/// `properties` are those of the object: `spec`, and the fields that the operator writes into `status`.
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
