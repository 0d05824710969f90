//! What every kind's CRD has, whatever its author writes.

use serde_json::{Map, Value, json};

/// A CRD as generated from Rust types, made what the API server and the loop need: optional fields that are
/// left out rather than null, no formats but Kubernetes' own, the status fields that the loop writes, and for
/// `kubectl get`, where no columns are named, whether an object is ready.
///
/// # Expected flow
///
/// A kind's [`crd`](crate::Kind::crd) returns what its generator gives, completed.
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

/// An optional field is left out, not null: `nullable` would make `has()` true for a null, and the
/// API conventions advise against it.
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
        *status = json!({"description": "What the controller last observed."});
    }
    status["type"] = json!("object");
    // It comes into being part by part: the loop tells that an object is invalid before its author's step has
    // told anything.
    if let Some(status) = status.as_object_mut() {
        status.remove("required");
    }
    let properties = &mut status["properties"];
    if !properties.is_object() {
        *properties = Value::Object(Map::new());
    }
    for (name, schema) in [
        ("accepted", accepted()),
        ("conditions", conditions()),
        ("observedGeneration", observed_generation()),
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
        "description": "The generation that this status speaks of.",
        "type": "integer", "format": "int64", "minimum": 0,
    })
}

fn text(description: &str, longest: u32) -> Value {
    json!({"description": description, "type": "string", "maxLength": longest})
}

/// By the API conventions; the bounds are those of `metav1.Condition`.
fn conditions() -> Value {
    json!({
        "description": "`Valid`: the object keeps its rules. `Ready`: what it stands for can be used; if not, `Reconciling` or `Stalled` tells whether that will come by itself.",
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": text("What is told.", 316),
                "status": {"description": "Whether it holds.", "type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": text("Why, in one CamelCase word for programs.", 1024),
                "message": text("Why, in a sentence for people.", 32768),
                "lastTransitionTime": {"description": "Since when it is as it is.", "type": "string", "format": "date-time"},
                "observedGeneration": {
                    "description": "The generation that this condition speaks of.",
                    "type": "integer", "format": "int64", "minimum": 0,
                },
            },
        },
    })
}

/// As [`Accepted`](crate::Accepted) reads and writes it.
fn accepted() -> Value {
    json!({
        "description": "The last accepted values of the fields whose changes are restricted.",
        "type": "object",
        "required": ["generation"],
        "properties": {
            "generation": {
                "description": "The generation that was accepted.",
                "type": "integer", "format": "int64", "minimum": 0,
            },
            "values": {
                "description": "The values by dotted field name.",
                "type": "object",
                "default": {},
                "maxProperties": 16,
                "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
            },
            "inherited": {
                "description": "Errors in spite of which the generation was accepted: a stricter rule came later.",
                "type": "array",
                "maxItems": 16,
                "items": {
                    "description": "An error that stays a warning as long as nothing that it depends on changes.",
                    "type": "object",
                    "required": ["at", "inputs", "rule"],
                    "properties": {
                        "at": text("Where it is broken.", 512),
                        "inputs": text("A fingerprint of what the error depends on.", 16),
                        "rule": text("The rule that is broken.", 512),
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_completed_where_it_is_a_subresource() {
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
            ["accepted", "conditions", "observedGeneration", "phase"]
        );
        assert_eq!(names(1), ["accepted", "conditions", "observedGeneration"]);
        assert_eq!(names(2), ["phase"]);
        assert_eq!(status(0)["properties"]["phase"], json!({"type": "string"}));
        assert_eq!(status(0)["type"], "object");
        assert_eq!(status(0).get("required"), None);
    }
}
