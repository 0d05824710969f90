//! Schemas of fields whose Rust types cannot express them.

use schemars::{Schema, SchemaGenerator, json_schema};

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

/// Returns the schema of `spec.monitoring.logExports`: the logs of all engines, of which one has at most five.
/// A rule compares them with the engine.
pub(crate) fn log_exports(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "string",
            "enum": ["audit", "error", "general", "iam-db-auth-error", "postgresql", "slowquery", "upgrade"],
        },
    })
}
