//! Parts that the CRDs of all kinds have in common.

use crd_validation::{MAX_FILTER_TEXT_BYTES, MAX_REPORTED};
use serde_json::{Map, Value, json};

use crate::last_validated::MAX_FIELDS;

/// Adapts a CRD that was generated from Rust types to what the API server and the controller need. Optional
/// fields are no longer `nullable`, the standard status fields that the controller writes are added, and
/// printer columns for `kubectl get` are added if the version has none.
///
/// # Expected flow
///
/// The [`crd`](crate::ValidatedResource::crd) function of a kind passes the generated CRD through this function.
#[must_use]
pub fn with_standard_fields(mut crd: Value) -> Value {
    tidy(&mut crd);
    let versions = crd
        .pointer_mut("/spec/versions")
        .and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if version.pointer("/subresources/status").is_some() {
            let schema = &mut version["schema"]["openAPIV3Schema"];
            add_to_status(&mut schema["properties"]["status"]);
            add_columns(&mut version["additionalPrinterColumns"]);
        }
    }
    crd
}

/// Adapts the CRD of a kind whose [`is_spec_optional`](crate::ValidatedResource::is_spec_optional) is true: objects
/// need no `spec`, although the Rust type always has one.
#[must_use]
pub fn with_optional_spec(mut crd: Value) -> Value {
    let versions = crd
        .pointer_mut("/spec/versions")
        .and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let schema = version.pointer_mut("/schema/openAPIV3Schema");
        let schema = schema.and_then(Value::as_object_mut);
        let Some(schema) = schema else { continue };
        let required = schema.get_mut("required").and_then(Value::as_array_mut);
        let is_empty = required.is_some_and(|required| {
            required.retain(|name| name != "spec");
            required.is_empty()
        });
        if is_empty {
            schema.remove("required");
        }
    }
    crd
}

/// Removes `nullable`. An optional field is omitted, not null: with `nullable`, `has()` would be true for a
/// null, and the API conventions advise against it.
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

fn add_to_status(status: &mut Value) {
    if !status.is_object() {
        *status = json!({"description": "Most recently observed status of the object."});
    }
    status["type"] = json!("object");
    // No status field may be required, because the status is written in steps: the controller reports that an
    // object is invalid before the kind's own reconciler has written anything.
    if let Some(status) = status.as_object_mut() {
        status.remove("required");
    }
    let properties = &mut status["properties"];
    if !properties.is_object() {
        *properties = Value::Object(Map::new());
    }
    for (name, schema) in [
        ("lastValidated", last_validated()),
        ("conditions", conditions()),
        ("observedGeneration", observed_generation()),
        ("lastHandledReconcileAt", last_handled_request()),
    ] {
        properties[name] = schema;
    }
}

fn add_columns(columns: &mut Value) {
    if columns.as_array().is_none_or(Vec::is_empty) {
        *columns = json!([
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
            {"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].reason"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]);
    }
}

fn observed_generation() -> Value {
    json!({
        "description": "The `metadata.generation` for which this status was written.",
        "type": "integer", "format": "int64", "minimum": 0,
    })
}

/// Value of an annotation, whose limit is the one of all annotations of an object.
fn last_handled_request() -> Value {
    text(
        "The value of the annotation `lockstep.dev/reconcile-requested-at` at the last reconciliation.",
        262_144,
    )
}

fn text(description: &str, longest: usize) -> Value {
    json!({"description": description, "type": "string", "maxLength": longest})
}

/// Conditions as defined by the API conventions. The limits are those of `metav1.Condition`.
fn conditions() -> Value {
    json!({
        "description": "`Valid`: the object complies with all rules. `Ready`: the resources that it describes can be used. If not, `Reconciling` means that the controller is still working on it, `Stalled` that it cannot make progress without intervention.",
        "type": "array",
        "maxItems": MAX_REPORTED,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": text("Type of the condition.", 316),
                "status": {"description": "Status of the condition.", "type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": text("Machine-readable reason for the status, one word in CamelCase.", 1024),
                "message": text("Human-readable explanation of the status.", 32768),
                "lastTransitionTime": {"description": "Time at which the status last changed.", "type": "string", "format": "date-time"},
                "observedGeneration": {
                    "description": "The `metadata.generation` for which this condition was set.",
                    "type": "integer", "format": "int64", "minimum": 0,
                },
            },
        },
    })
}

/// Schema of the field that [`LastValidated`](crate::LastValidated) reads and writes.
fn last_validated() -> Value {
    json!({
        "description": "Last validated values of the fields whose changes are restricted.",
        "type": "object",
        "required": ["generation"],
        "properties": {
            "generation": {
                "description": "The validated `metadata.generation`.",
                "type": "integer", "format": "int64", "minimum": 0,
            },
            "values": {
                "description": "Values by dotted field path. A field that was absent has the value `{}`.",
                "type": "object",
                "default": {},
                "maxProperties": MAX_FIELDS,
                "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
            },
            "ratcheted": {
                "description": "Errors of this generation that are only warnings, because a stricter rule was introduced after the object was stored.",
                "type": "array",
                "maxItems": MAX_REPORTED,
                "items": {
                    "description": "An error that stays a warning as long as no value that it depends on changes.",
                    "type": "object",
                    "required": ["at", "inputs", "rule"],
                    "properties": {
                        "at": text("Path of the field that violates the rule.", 512),
                        "inputs": text("Fingerprint of the values that the error depends on.", 16),
                        "rule": text("Id of the violated rule.", 512),
                    },
                },
            },
            "ratchetedFilter": text(
                "All errors of this generation that are only warnings, if they are more than are listed: a Bloom filter, as base64.",
                MAX_FILTER_TEXT_BYTES,
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_status_fields_are_added_if_status_is_a_subresource() {
        let version = |subresources: Value, status: Value| {
            let schema = json!({"properties": {"status": status}});
            json!({"subresources": subresources, "schema": {"openAPIV3Schema": schema}})
        };
        let own = json!({
            "properties": {"phase": {"type": "string", "nullable": true}},
            "required": ["phase"],
            "nullable": true,
        });
        let crd = with_standard_fields(json!({"spec": {"versions": [
            version(json!({"status": {}}), own.clone()),
            version(json!({"status": {}}), Value::Null),
            version(json!({}), own),
        ]}}));
        let status = |at: usize| {
            &crd["spec"]["versions"][at]["schema"]["openAPIV3Schema"]["properties"]["status"]
        };
        let names = |at: usize| -> Vec<_> {
            let properties = status(at)["properties"].as_object();
            properties
                .into_iter()
                .flat_map(Map::keys)
                .map(String::as_str)
                .collect()
        };
        assert_eq!(
            names(0),
            [
                "conditions",
                "lastHandledReconcileAt",
                "lastValidated",
                "observedGeneration",
                "phase"
            ]
        );
        assert_eq!(
            names(1),
            [
                "conditions",
                "lastHandledReconcileAt",
                "lastValidated",
                "observedGeneration"
            ]
        );
        assert_eq!(names(2), ["phase"]);
        assert_eq!(status(0)["properties"]["phase"], json!({"type": "string"}));
        assert_eq!(status(0)["type"], "object");
        assert_eq!(status(0).get("required"), None);
    }
}
