//! The CRD as the API server gets it.

use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::kind;
use crate::spec::CloudDatabase;

/// The schema of `spec.tags`: bounds for the values, which a map type alone does not carry.
pub(crate) fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}

/// The schema of `status.accepted.values`: scalars of any type.
pub(crate) fn accepted_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true },
    })
}

/// The CRD.
pub(crate) fn crd() -> Value {
    let mut crd = serde_json::to_value(CloudDatabase::crd()).expect("a CRD is JSON");
    tidy(&mut crd);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] =
        "A managed relational database: an AWS RDS instance.".into();
    kind::V1BETA1.add_to(&mut crd);
    crd
}

/// An optional field is left out, not null: `nullable` would make `has()` true for a null, and the
/// API conventions advise against it. The names that generators give to Rust's integers are no
/// formats of Kubernetes.
fn tidy(node: &mut Value) {
    match node {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
