//! A CRD as the JSON schemas that kubeconform reads.

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

/// The schema of a whole object: type and metadata are every object's own.
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

/// What of a schema JSON schema knows too. A field that no property names is refused, as the API server
/// does where it decodes strictly.
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
            // Descriptions and defaults decide nothing; CEL and the rest of Kubernetes' own are not known.
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
    fn what_json_schema_knows_stays_and_unknown_fields_are_refused() {
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
