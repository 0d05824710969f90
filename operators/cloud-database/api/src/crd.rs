//! `CustomResourceDefinition` of CloudDatabase.

use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use shared_validation::with_standard_fields;

use crate::kind;
use crate::spec::CloudDatabase;

/// Returns the schema of `spec.tags`, with a length limit for the values, which the Rust map type cannot express.
pub(crate) fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}

/// Returns the schema of `spec.network.securityGroups`: security group IDs of EC2, as many as a network interface can
/// have.
pub(crate) fn security_groups(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "pattern": "^sg-([0-9a-f]{8}|[0-9a-f]{17})$", "maxLength": 20 },
    })
}

/// Returns the CRD.
pub(crate) fn crd() -> Value {
    let crd = serde_json::to_value(CloudDatabase::crd()).expect("a CRD is JSON");
    let mut crd = with_standard_fields(crd);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] =
        "A managed relational database: an AWS RDS instance.".into();
    kind::V1BETA1.add_to(&mut crd);
    crd
}
