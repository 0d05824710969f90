//! Conversion of a CRD to the JSON schemas that kubeconform reads.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

/// Writes a schema for each version of a CRD: `<kind>_<version>.json`, in lower case.
pub(crate) fn write(crd: &Path, folder: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(crd).with_context(|| crd.display().to_string())?;
    let crd: Value = serde_saphyr::from_str(&text)?;
    fs::create_dir_all(folder)?;
    let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array();
    for version in versions.into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        let file = format!("{kind}_{name}.json").to_lowercase();
        let schema = of_resource(&version["schema"]["openAPIV3Schema"]);
        fs::write(folder.join(file), serde_json::to_vec_pretty(&schema)?)?;
    }
    Ok(())
}

/// Returns the schema of a complete object: the fields of every object (type and metadata) are added.
fn of_resource(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["properties"]["apiVersion"] = json!({"type": "string"});
    schema["properties"]["kind"] = json!({"type": "string"});
    schema["properties"]["metadata"] = json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    });
    of_node(&schema)
}

/// Returns the part of a schema that is also JSON schema. Unknown fields are rejected, as by the API server when it
/// decodes strictly.
fn of_node(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut node = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties = properties.map(|(name, child)| (name.clone(), of_node(child)));
                Value::Object(properties.collect())
            }
            "items" | "additionalProperties" => of_node(value),
            // Descriptions and defaults do not affect validation. kubeconform ignores CEL and other Kubernetes
            // extensions.
            "description" | "title" | "default" => continue,
            own if own.starts_with("x-kubernetes-") => continue,
            _ => value.clone(),
        };
        node.insert(name.clone(), value);
    }
    if node.contains_key("properties") && !node.contains_key("additionalProperties") {
        node.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_schema_keywords_are_kept_and_unknown_fields_are_rejected() {
        let schema = json!({
            "type": "object",
            "properties": {"spec": {
                "type": "object",
                "description": "d",
                "properties": {"default": {"type": "string", "default": "x", "maxLength": 3}},
                "x-kubernetes-validations": [{"rule": "true"}],
            }},
        });
        assert_eq!(
            of_resource(&schema),
            json!({
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": {
                        "type": "object",
                        "additionalProperties": false,
                        "properties": {"default": {"type": "string", "maxLength": 3}},
                    },
                },
            })
        );
    }
}
