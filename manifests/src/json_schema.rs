//! JSON Schemas for editors, generated from the CRDs.

use serde_json::{Map, Value, json};

/// Returns the JSON Schema of one kind, for `yaml-language-server` and similar tools.
///
/// Editors support JSON Schema but not the extensions of Kubernetes. Objects without unknown fields get
/// `additionalProperties: false`, and everything that plain JSON Schema cannot express is omitted.
pub(crate) fn json_schema(crd: &Value, group: &str, version: &str, kind: &str) -> Value {
    let versions = crd["spec"]["versions"].as_array();
    let definition = versions
        .into_iter()
        .flatten()
        .find(|one| one["name"] == version);
    let mut schema = definition.map_or(json!({}), |one| plain(&one["schema"]["openAPIV3Schema"]));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(kind);
    let properties = &mut schema["properties"];
    properties["apiVersion"] = json!({"const": format!("{group}/{version}")});
    properties["kind"] = json!({"const": kind});
    properties["metadata"] = json!({"type": "object"});
    if let Some(properties) = properties.as_object_mut() {
        // Only the controller writes the status.
        properties.remove("status");
    }
    schema["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    schema
}

fn plain(node: &Value) -> Value {
    let Some(fields) = node.as_object() else {
        return node.clone();
    };
    let mut out = Map::new();
    for (keyword, value) in fields {
        match keyword.as_str() {
            "properties" => {
                let children = value.as_object().into_iter().flatten();
                let children = children.map(|(name, child)| (name.clone(), plain(child)));
                out.insert(keyword.clone(), Value::Object(children.collect()));
            }
            "items" | "additionalProperties" | "not" => {
                out.insert(keyword.clone(), plain(value));
            }
            "allOf" | "anyOf" | "oneOf" => {
                let all = value.as_array().into_iter().flatten().map(plain);
                out.insert(keyword.clone(), all.collect());
            }
            "minimum" | "maximum" => {
                let exclusive = if keyword == "minimum" {
                    "exclusiveMinimum"
                } else {
                    "exclusiveMaximum"
                };
                let name = if fields.get(exclusive) == Some(&json!(true)) {
                    exclusive
                } else {
                    keyword
                };
                out.insert(name.to_owned(), value.clone());
            }
            "exclusiveMinimum" | "exclusiveMaximum" | "nullable" | "format" => {}
            extension if extension.starts_with("x-kubernetes-") => {}
            _ => {
                out.insert(keyword.clone(), value.clone());
            }
        }
    }
    let closed = fields.get("properties").is_some()
        && fields.get("additionalProperties").is_none()
        && fields.get("x-kubernetes-preserve-unknown-fields") != Some(&json!(true));
    if closed {
        out.insert("additionalProperties".to_owned(), json!(false));
    }
    if fields.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        out.insert("type".to_owned(), json!(["integer", "string"]));
    }
    if fields.get("nullable") == Some(&json!(true))
        && let Some(name) = out.get("type").cloned()
    {
        out.insert("type".to_owned(), json!([name, "null"]));
    }
    Value::Object(out)
}
