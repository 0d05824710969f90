//! Schema of another version: the schema of the validated version with its fields moved.

use serde_json::{Value, json};

use crate::conversion::VersionMapping;

impl VersionMapping {
    /// Adds this version to a CRD that has only the validated version. The version is not served, because a
    /// conversion webhook has no failure policy: a client that lists objects in it depends on the webhook.
    ///
    /// CEL rules that name a field that this version has elsewhere are left out, since an expression cannot be moved. They
    /// are evaluated after the conversion, by the controller at the latest.
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
        let moved = self.moves.iter().map(|(validated, _)| validated);
        for name in moved.chain(self.only_in_storage) {
            remove_rules_on(schema, name);
        }
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

/// Removes the CEL rules of the parent of a field that name this field.
fn remove_rules_on(schema: &mut Value, name: &str) {
    const RULES: &str = "x-kubernetes-validations";
    let (parent, field) = name.rsplit_once('.').unwrap_or(("", name));
    let Some(parent) = node(schema, parent).and_then(Value::as_object_mut) else {
        return;
    };
    let Some(rules) = parent.get_mut(RULES).and_then(Value::as_array_mut) else {
        return;
    };
    rules.retain(|rule| {
        let texts = [&rule["rule"], &rule["fieldPath"]];
        let mut texts = texts.into_iter().filter_map(Value::as_str);
        !texts.any(|text| selects(text, field))
    });
    if rules.is_empty() {
        parent.remove(RULES);
    }
}

/// Returns true if an expression or a path selects a field of this name.
fn selects(text: &str, field: &str) -> bool {
    let is_part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = text.split('.').skip(1).filter_map(|after| {
        let name = after.split(|c| !is_part_of_name(c));
        name.into_iter().next()
    });
    names.any(|name| name == field)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_name_a_moved_field_are_left_out() {
        let mapping = VersionMapping {
            name: "v1beta1",
            moves: &[("spec.login.secret", "spec.login.ref.name")],
            only_in_storage: &["spec.login.keys"],
            only_in_version: &[],
        };
        let text = json!({"type": "string"});
        let rules = json!([
            {"rule": "has(self.secret) || has(self.token)"},
            {"rule": "self.token != ''", "fieldPath": ".keys"},
            {"rule": "self.secretary == self.token"},
        ]);
        let login = json!({
            "properties": {"secret": text, "keys": text, "token": text, "secretary": text},
            "x-kubernetes-validations": rules,
        });
        let spec = json!({"properties": {"login": login}});
        let schema = json!({"openAPIV3Schema": {"properties": {"spec": spec}}});
        let mut crd = json!({"spec": {"versions": [{"name": "v1", "schema": schema}]}});
        mapping.add_to(&mut crd);
        let login = "/schema/openAPIV3Schema/properties/spec/properties/login";
        let rules = |version: usize| {
            let login = crd["spec"]["versions"][version].pointer(login);
            login.expect("a field")["x-kubernetes-validations"].clone()
        };
        assert_eq!(rules(0).as_array().map(Vec::len), Some(3));
        let kept = json!([{"rule": "self.secretary == self.token"}]);
        assert_eq!(rules(1), kept);
    }
}
