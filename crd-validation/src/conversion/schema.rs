//! Schema of another version: the schema of the validated version with its fields moved.

use serde_json::{Value, json};

use crate::conversion::VersionMapping;

impl VersionMapping {
    /// Adds this version to a CRD that has only the validated version. The version is not served, because a
    /// conversion webhook has no failure policy: a client that lists objects in it depends on the webhook.
    pub fn add_to(&self, crd: &mut Value) {
        let Some(versions) = crd["spec"]["versions"].as_array_mut() else {
            return;
        };
        let Some(mut other) = versions.first().cloned() else {
            return;
        };
        other["name"] = self.name.into();
        other["served"] = false.into();
        other["storage"] = false.into();
        let schema = &mut other["schema"]["openAPIV3Schema"];
        for (validated, here) in self.moves {
            relocate(schema, validated, here);
        }
        for name in self.only_in_storage {
            take(schema, name);
        }
        for (name, description) in self.only_in_version {
            if let Some(node) = node(schema, name) {
                node["description"] = (*description).into();
            }
        }
        let columns = other["additionalPrinterColumns"].as_array_mut();
        for column in columns.into_iter().flatten() {
            let path = column["jsonPath"].as_str().unwrap_or_default();
            let moved = self.moves.iter().find_map(|(validated, here)| {
                (path.strip_prefix('.') == Some(*validated)).then(|| format!(".{here}"))
            });
            if let Some(moved) = moved {
                column["jsonPath"] = moved.into();
            }
        }
        versions.push(other);
    }
}

fn relocate(schema: &mut Value, from: &str, to: &str) {
    let Some((field, is_required)) = take(schema, from) else {
        return;
    };
    let (parent, name) = to.rsplit_once('.').unwrap_or(("", to));
    let mut parent_schema = schema;
    for step in parent.split('.').filter(|step| !step.is_empty()) {
        if parent_schema["properties"].get(step).is_none() {
            parent_schema["properties"][step] = json!({"type": "object"});
        }
        if is_required {
            require(parent_schema, step);
        }
        parent_schema = &mut parent_schema["properties"][step];
    }
    parent_schema["properties"][name] = field;
    if is_required {
        require(parent_schema, name);
    }
}

/// Removes a field from its parent. Returns its schema, and true if it was required.
fn take(schema: &mut Value, name: &str) -> Option<(Value, bool)> {
    let (parent, field) = name.rsplit_once('.').unwrap_or(("", name));
    let parent_schema = node(schema, parent)?;
    let removed = parent_schema["properties"].as_object_mut()?.remove(field)?;
    let required = parent_schema
        .get_mut("required")
        .and_then(Value::as_array_mut);
    let is_required = required.is_some_and(|required| {
        let before = required.len();
        required.retain(|name| name != field);
        required.len() < before
    });
    if parent_schema["required"]
        .as_array()
        .is_some_and(Vec::is_empty)
    {
        parent_schema.as_object_mut()?.remove("required");
    }
    Some((removed, is_required))
}

fn require(node: &mut Value, field: &str) {
    if !node["required"].is_array() {
        node["required"] = json!([]);
    }
    if let Some(required) = node["required"].as_array_mut()
        && !required.iter().any(|name| name == field)
    {
        required.push(field.into());
    }
}

fn node<'a>(schema: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let mut parent_schema = schema;
    for step in name.split('.').filter(|step| !step.is_empty()) {
        parent_schema = parent_schema.get_mut("properties")?.get_mut(step)?;
    }
    Some(parent_schema)
}
