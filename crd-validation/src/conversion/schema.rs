//! Schema of another version: the schema of the validated version with its fields moved.

mod default;
mod requirement;

use serde_json::{Map, Value, json};

use crate::conversion::VersionMapping;
use crate::conversion::schema::requirement::{is_required_below, require};

impl VersionMapping {
    /// Adds this version to a CRD that has only the validated version. Unless the mapping is [`served`](Self::served), the
    /// version is not.
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
        other["served"] = self.is_served.into();
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
            default::take(schema, name);
            take(schema, name);
        }
        for (name, description) in self.only_in_version {
            if let Some(node) = node(schema, name) {
                node["description"] = (*description).into();
            }
        }
        self.relocate_paths(&mut other);
        versions.push(other);
    }

    /// Returns the paths of the objects of a CRD that have fields in the validated version and none in this one, which
    /// [`only_in_storage`](Self::only_in_storage) must contain: every converted object would have them, and the API server
    /// refuses a schema in which they are required or have a default.
    #[must_use]
    pub fn emptied_objects(&self, crd: &Value) -> Vec<String> {
        let versions = crd["spec"]["versions"].as_array();
        let mut versions = versions.into_iter().flatten();
        let here = versions.find(|version| version["name"] == self.name);
        let Some(schema) = here.map(|version| &version["schema"]["openAPIV3Schema"]) else {
            return Vec::new();
        };
        let moved = self.moves.iter().map(|(validated, _)| *validated);
        let left = moved.chain(self.only_in_storage.iter().copied());
        let parents = left.filter_map(|path| path.rsplit_once('.').map(|(parent, _)| parent));
        let is_emptied = |path: &&str| {
            let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
            schema.pointer(&pointer).is_some_and(|node| {
                node["properties"].as_object().is_some_and(Map::is_empty)
                    && node.get("additionalProperties").is_none()
                    && node["x-kubernetes-preserve-unknown-fields"] != true
            })
        };
        let mut emptied: Vec<_> = parents
            .filter(|path| *path != "spec")
            .filter(is_emptied)
            .map(String::from)
            .collect();
        emptied.sort_unstable();
        emptied.dedup();
        emptied
    }

    /// Adjusts the paths of the printer columns, the selectable fields and the subresource `scale`.
    fn relocate_paths(&self, version: &mut Value) {
        for list in ["additionalPrinterColumns", "selectableFields"] {
            if let Some(fields) = version.get_mut(list).and_then(Value::as_array_mut) {
                fields.retain_mut(|field| self.relocate_path(&mut field["jsonPath"]));
            }
        }
        let scale = version.pointer_mut("/subresources/scale");
        if let Some(paths) = scale.and_then(Value::as_object_mut) {
            paths.retain(|_, path| self.relocate_path(path));
        }
    }

    /// Replaces the path of a moved field, or of a field of a moved object. Returns false if this version has no such field.
    fn relocate_path(&self, path: &mut Value) -> bool {
        let Some(old) = path.as_str().and_then(|path| path.strip_prefix('.')) else {
            return true;
        };
        let below = |parent: &str| {
            let rest = old.strip_prefix(parent)?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
        };
        let mut moves = self.moves.iter();
        let moved =
            moves.find_map(|(validated, here)| Some(format!(".{here}{}", below(validated)?)));
        if let Some(moved) = moved {
            *path = moved.into();
            return true;
        }
        !self
            .only_in_storage
            .iter()
            .any(|name| below(name).is_some())
    }
}

/// Moves a field. In its new place it has the default that an object around it gave it, and it is required if it was required
/// in all objects around it that the two places do not share.
fn relocate(schema: &mut Value, from: &str, to: &str) {
    let shared = shared_parents(from, to);
    let is_required = is_required_below(schema, from, shared);
    let default = default::take(schema, from);
    let Some(mut field) = take(schema, from) else {
        return;
    };
    if let (Some(default), Some(fields)) = (default, field.as_object_mut()) {
        fields.entry("default").or_insert(default);
    }
    let (parent, name) = to.rsplit_once('.').unwrap_or(("", to));
    let mut parent_schema = schema;
    for (depth, step) in steps(parent).enumerate() {
        if parent_schema["properties"].get(step).is_none() {
            parent_schema["properties"][step] = json!({"type": "object"});
        }
        if is_required && depth >= shared {
            require(parent_schema, step);
        }
        parent_schema = &mut parent_schema["properties"][step];
    }
    parent_schema["properties"][name] = field;
    if is_required {
        require(parent_schema, name);
    }
}

/// Returns the number of objects around both paths.
fn shared_parents(from: &str, to: &str) -> usize {
    let parents = |path: &str| path.matches('.').count();
    let steps_of_both = steps(from).zip(steps(to));
    let shared = steps_of_both.take_while(|(from, to)| from == to).count();
    shared.min(parents(from)).min(parents(to))
}

/// Removes a field from its parent, and returns its schema.
fn take(schema: &mut Value, name: &str) -> Option<Value> {
    let (parent, field) = name.rsplit_once('.').unwrap_or(("", name));
    let parent_schema = node(schema, parent)?;
    let removed = parent_schema["properties"].as_object_mut()?.remove(field)?;
    requirement::remove(parent_schema, field);
    Some(removed)
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

fn node<'a>(schema: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let mut parent_schema = schema;
    for step in steps(name) {
        parent_schema = parent_schema.get_mut("properties")?.get_mut(step)?;
    }
    Some(parent_schema)
}

/// Returns the fields of a path, from the root.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|step| !step.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(spec: Value) -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
    }

    /// Returns the schema of the spec in the version of a mapping.
    fn spec(mapping: &VersionMapping, crd: &mut Value) -> Value {
        mapping.add_to(crd);
        let spec = crd.pointer("/spec/versions/1/schema/openAPIV3Schema/properties/spec");
        spec.expect("a spec").clone()
    }

    #[test]
    fn rules_that_name_a_moved_field_are_left_out() {
        let mapping = VersionMapping::new("v1beta1")
            .moves(&[("spec.login.secret", "spec.login.ref.name")])
            .only_in_storage(&["spec.login.keys"]);
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
        let mut crd = crd(json!({"properties": {"login": login}}));
        let here = spec(&mapping, &mut crd);
        let kept = json!([{"rule": "self.secretary == self.token"}]);
        assert_eq!(
            here["properties"]["login"]["x-kubernetes-validations"],
            kept
        );
        let validated = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
        let validated = &validated.expect("a spec")["properties"]["login"];
        assert_eq!(validated["x-kubernetes-validations"], rules);
    }

    #[test]
    fn a_moved_field_keeps_the_default_that_the_object_around_it_gave_it() {
        const MAPPING: VersionMapping = VersionMapping::new("v1beta1")
            .moves(&[("spec.scale.replicas", "spec.replicas")])
            .only_in_storage(&["spec.scale.limits.cpu"]);
        let number = json!({"type": "integer"});
        let scale = json!({
            "type": "object", "required": ["replicas"], "default": {"replicas": 1, "limits": {"cpu": 2}, "zones": 3},
            "properties": {
                "replicas": number, "zones": number,
                "limits": {"type": "object", "properties": {"cpu": number, "memory": number}},
            },
        });
        let mut crd = crd(json!({"type": "object", "properties": {"scale": scale}}));
        let here = spec(&MAPPING, &mut crd);
        let scale = json!({
            "type": "object", "default": {"limits": {}, "zones": 3},
            "properties": {"zones": number, "limits": {"type": "object", "properties": {"memory": number}}},
        });
        let replicas = json!({"type": "integer", "default": 1});
        let expected =
            json!({"type": "object", "properties": {"scale": scale, "replicas": replicas}});
        assert_eq!(
            here, expected,
            "an optional object does not make its fields required"
        );
        assert!(MAPPING.emptied_objects(&crd).is_empty());
    }

    #[test]
    fn a_field_that_every_object_has_is_required_in_its_new_place() {
        const MAPPING: VersionMapping = VersionMapping::new("v1beta1").moves(&[
            ("spec.content.name", "spec.contentRef"),
            ("spec.host", "spec.http.host"),
        ]);
        let text = json!({"type": "string"});
        let content = json!({"type": "object", "required": ["name"], "properties": {"name": text}});
        let before = json!({
            "type": "object", "required": ["content", "host"], "properties": {"content": content, "host": text},
        });
        let mut crd = crd(before);
        let here = spec(&MAPPING, &mut crd);
        assert_eq!(here["required"], json!(["content", "contentRef", "http"]));
        assert_eq!(here["properties"]["http"]["required"], json!(["host"]));
        assert_eq!(MAPPING.emptied_objects(&crd), ["spec.content"]);
        let root = crd.pointer("/spec/versions/1/schema/openAPIV3Schema/required");
        assert_eq!(root, None, "the spec is as optional as before");
    }

    #[test]
    fn an_object_whose_fields_have_moved_is_left_out_if_the_mapping_says_so() {
        const MAPPING: VersionMapping = VersionMapping::new("v1beta1")
            .moves(&[("spec.content.name", "spec.contentRef")])
            .only_in_storage(&["spec.content"])
            .served();
        let content = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
        let mut crd = crd(
            json!({"type": "object", "required": ["content"], "properties": {"content": content}}),
        );
        let here = spec(&MAPPING, &mut crd);
        let expected = json!({
            "type": "object", "required": ["contentRef"], "properties": {"contentRef": {"type": "string"}},
        });
        assert_eq!(here, expected);
        assert!(MAPPING.emptied_objects(&crd).is_empty());
        assert_eq!(crd["spec"]["versions"][1]["served"], true);
    }

    #[test]
    fn paths_outside_the_schema_follow_the_moved_fields() {
        const MAPPING: VersionMapping = VersionMapping::new("v1beta1")
            .moves(&[("spec.scale", "spec.size"), ("spec.host", "spec.http.host")])
            .only_in_storage(&["spec.note"]);
        let mut crd =
            crd(json!({"properties": {"scale": {}, "host": {}, "note": {}, "hostname": {}}}));
        let version = &mut crd["spec"]["versions"][0];
        let paths = |paths: &[&str]| -> Value {
            paths.iter().map(|path| json!({"jsonPath": path})).collect()
        };
        version["additionalPrinterColumns"] =
            paths(&[".spec.host", ".spec.hostname", ".spec.note", ".status.url"]);
        version["selectableFields"] = paths(&[".spec.note", ".spec.scale.zone"]);
        version["subresources"] =
            json!({"status": {}, "scale": {"specReplicasPath": ".spec.scale.replicas"}});
        MAPPING.add_to(&mut crd);
        let here = &crd["spec"]["versions"][1];
        let columns = paths(&[".spec.http.host", ".spec.hostname", ".status.url"]);
        assert_eq!(here["additionalPrinterColumns"], columns);
        assert_eq!(here["selectableFields"], paths(&[".spec.size.zone"]));
        let scale = json!({"specReplicasPath": ".spec.size.replicas"});
        assert_eq!(here["subresources"], json!({"status": {}, "scale": scale}));
    }
}
