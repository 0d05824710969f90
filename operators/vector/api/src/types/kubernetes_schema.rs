//! Schemas of types of the Kubernetes API, for fields that become a part of a Pod or of another object.
//!
//! They are those of the Kubernetes version that `k8s-openapi` is compiled for. Lists are atomic, as in the CRDs of the
//! operator of kaasops: a CRD with `x-kubernetes-list-type: map` would deny every update of a stored object with a
//! duplicate, because the API server does not ratchet list types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::types::crd;

/// Maximum length of a description, in bytes. The descriptions of the Kubernetes API make up most of its schemas, and
/// `kubectl apply` stores the whole CRD in an annotation of at most 256 KiB.
const MAX_DESCRIPTION: usize = 160;

/// Fields of `metadata` that an object inside another one can have.
const METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Returns the schema of an object of a type of the Kubernetes API.
pub(crate) fn object<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let mut generator = SchemaGenerator::new(settings);
    let mut schema = generator.subschema_for::<T>().to_value();
    let quantity = crd::quantity(&mut generator).to_value();
    simplify(&mut schema, &quantity);
    schema
}

/// Returns the schema of a list of objects of a type of the Kubernetes API.
pub(crate) fn list<T: JsonSchema>() -> Value {
    let mut items = object::<T>();
    // The description is the one of the field.
    if let Some(fields) = items.as_object_mut() {
        fields.remove("description");
    }
    json!({"type": "array", "items": items})
}

/// Puts the schema of a type of the Kubernetes API in the place of the one of a field, whose description and extensions
/// stay.
pub(crate) fn replace(field: &mut Map<String, Value>, schema: Value) {
    field.remove("x-kubernetes-preserve-unknown-fields");
    field.remove("items");
    let Value::Object(schema) = schema else {
        return;
    };
    for (name, value) in schema {
        field.entry(name).or_insert(value);
    }
}

/// Shortens descriptions, restricts nested metadata, and adds the pattern of quantities.
fn simplify(schema: &mut Value, quantity: &Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("description") {
                if text.starts_with("Quantity is a fixed-point representation") {
                    *schema = quantity.clone();
                    return;
                }
                let text = first_sentence(text).into();
                fields.insert("description".to_owned(), text);
            }
            if let Some(metadata) = fields
                .get_mut("properties")
                .filter(|properties| properties.get("managedFields").is_some())
                .and_then(Value::as_object_mut)
            {
                metadata.retain(|name, _| METADATA.contains(&name.as_str()));
            }
            for value in fields.values_mut() {
                simplify(value, quantity);
            }
        }
        Value::Array(items) => {
            for item in items {
                simplify(item, quantity);
            }
        }
        _ => {}
    }
}

/// Returns the first sentence of a description, shortened if it is long.
fn first_sentence(text: &str) -> String {
    let line = text.split('\n').next().unwrap_or_default().trim();
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    let sentence = sentence.trim_end_matches('.');
    if sentence.len() <= MAX_DESCRIPTION {
        return format!("{sentence}.");
    }
    let end = sentence.floor_char_boundary(MAX_DESCRIPTION);
    let end = sentence[..end].rfind(' ').unwrap_or(end);
    format!("{} …", &sentence[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_the_first_sentence() {
        let long = "word ".repeat(60);
        for (text, expected) in [
            ("One. Two.", "One."),
            ("One", "One."),
            ("One.\nTwo", "One."),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
        let short = first_sentence(&long);
        assert!(
            short.ends_with("word …") && short.len() <= MAX_DESCRIPTION + 4,
            "{short}"
        );
    }
}
