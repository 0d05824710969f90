//! Schema of another version: the schema of the validated version with its fields moved.

mod default;
mod path;
mod requirement;

use serde_json::{Map, Value, json};

use crate::conversion::VersionMapping;
use crate::conversion::schema::path::steps;
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
            // Rules within a moved object name its fields by their new paths.
            remove_rules_on(schema, name);
            default::remove(schema, name);
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

    /// Returns why the API server would refuse the schema of this version in a CRD, or objects in it; empty if it would not.
    #[must_use]
    pub fn problems(&self, crd: &Value) -> Vec<String> {
        let mut problems: Vec<_> = self
            .emptied_objects(crd)
            .map(|path| {
                format!("all fields of `{path}` are elsewhere; add it to `only_in_storage`")
            })
            .collect();
        let versions = crd["spec"]["versions"].as_array();
        let validated = versions.and_then(|versions| versions.first());
        let schema = validated.map(|version| &version["schema"]["openAPIV3Schema"]);
        for path in self.left_places() {
            let field = path.rsplit('.').next().unwrap_or(path);
            if schema.is_some_and(|schema| is_alternative(schema, path, field)) {
                problems.push(format!(
                    "`{path}` is named in `oneOf`, `anyOf`, `allOf` or `not`, which a mapping does not change; \
                     leave the field where it is"
                ));
            }
        }
        problems.sort_unstable();
        problems.dedup();
        problems
    }

    /// Returns the places in the validated version that are empty in this one.
    fn left_places(&self) -> impl Iterator<Item = &'static str> {
        let moved = self.moves.iter().map(|(validated, _)| *validated);
        moved.chain(self.only_in_storage.iter().copied())
    }

    /// Returns the paths of the objects that have fields in the validated version and none in this one. They would be required,
    /// or have defaults, without fields.
    fn emptied_objects(&self, crd: &Value) -> impl Iterator<Item = &'static str> {
        let versions = crd["spec"]["versions"].as_array();
        let mut versions = versions.into_iter().flatten();
        let here = versions.find(|version| version["name"] == self.name);
        let schema = here.map(|version| &version["schema"]["openAPIV3Schema"]);
        let parents = self
            .left_places()
            .filter_map(|path| path.rsplit_once('.').map(|(parent, _)| parent));
        parents.filter(|path| *path != "spec").filter(move |path| {
            let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
            let node = schema.and_then(|schema| schema.pointer(&pointer));
            node.is_some_and(|node| {
                node["properties"].as_object().is_some_and(Map::is_empty)
                    && node.get("additionalProperties").is_none()
                    && node["x-kubernetes-preserve-unknown-fields"] != true
            })
        })
    }

    /// Adjusts the paths of the printer columns, the selectable fields and the subresource `scale`.
    fn relocate_paths(&self, version: &mut Value) {
        for list in ["additionalPrinterColumns", "selectableFields"] {
            if let Some(fields) = version.get_mut(list).and_then(Value::as_array_mut) {
                fields.retain_mut(|field| self.relocate_path(&mut field["jsonPath"]));
            }
        }
        let scale = version.pointer_mut("/subresources/scale");
        let Some(paths) = scale.and_then(Value::as_object_mut) else {
            return;
        };
        paths.retain(|_, path| self.relocate_path(path));
        let is_complete = ["specReplicasPath", "statusReplicasPath"]
            .iter()
            .all(|name| paths.contains_key(*name));
        if !is_complete && let Some(all) = version["subresources"].as_object_mut() {
            all.remove("scale");
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
        let mut all = self.moves.iter();
        let relocated =
            all.find_map(|(validated, here)| Some(format!(".{here}{}", below(validated)?)));
        if let Some(relocated) = relocated {
            *path = relocated.into();
            return true;
        }
        !self
            .only_in_storage
            .iter()
            .any(|name| below(name).is_some())
    }
}

/// Moves a field.
///
/// A default must not create the objects around the earlier place: the field keeps its own only if all of them always exist,
/// and loses those of the objects around it, which apply after the conversion. For the same reason it is required only if it
/// was required in all objects around it that the two places do not share, and had no default.
fn relocate(schema: &mut Value, from: &str, to: &str) {
    let shared = shared_parents(from, to);
    let is_required = is_required_below(schema, from, shared);
    let parent = from.rsplit_once('.').map_or("", |(parent, _)| parent);
    let has_parents = is_required_below(schema, parent, shared);
    default::relocate(schema, from, to, shared);
    let Some(mut field) = take(schema, from) else {
        return;
    };
    if !has_parents && let Some(fields) = field.as_object_mut() {
        fields.remove("default");
    }
    let (parent, name) = to.rsplit_once('.').unwrap_or(("", to));
    // The default of an object must satisfy its schema.
    let is_required =
        is_required && field.get("default").is_none() && !has_default_below(schema, parent, shared);
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

/// Returns true if an object on a path, from this depth on, has a default.
fn has_default_below(schema: &Value, path: &str, depth: usize) -> bool {
    let mut node = schema;
    steps(path).enumerate().any(|(at, step)| {
        node = &node["properties"][step];
        at >= depth && node.get("default").is_some()
    })
}

/// Returns true if an alternative in the schema of an object around a field names it.
fn is_alternative(schema: &Value, path: &str, field: &str) -> bool {
    let name = Value::from(field).to_string();
    let names_it = |node: &Value| {
        let keywords = ["oneOf", "anyOf", "allOf", "not"];
        let mut alternatives = keywords.iter().filter_map(|keyword| node.get(*keyword));
        alternatives.any(|it| it.to_string().contains(&name))
    };
    let mut node = schema;
    let count = path.matches('.').count();
    let mut steps = steps(path);
    (0..=count).any(|_| {
        let is_named = names_it(node);
        node = &node["properties"][steps.next().unwrap_or_default()];
        is_named
    })
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

/// Removes the CEL rules of the objects around a field that name it.
fn remove_rules_on(schema: &mut Value, name: &str) {
    let path: Vec<_> = steps(name).collect();
    let mut node = schema;
    for (depth, step) in path.iter().enumerate() {
        remove_rules(node, &path[depth..]);
        let next = node.get_mut("properties");
        let Some(next) = next.and_then(|fields| fields.get_mut(*step)) else {
            return;
        };
        node = next;
    }
}

/// Removes the CEL rules of an object that name all fields on a path below it.
fn remove_rules(node: &mut Value, path: &[&str]) {
    const RULES: &str = "x-kubernetes-validations";
    let Some(node) = node.as_object_mut() else {
        return;
    };
    let Some(rules) = node.get_mut(RULES).and_then(Value::as_array_mut) else {
        return;
    };
    rules.retain(|rule| {
        let texts = ["rule", "fieldPath", "messageExpression"];
        let mut texts = texts.iter().filter_map(|name| rule[*name].as_str());
        !texts.any(|text| path.iter().all(|field| selects(text, field)))
    });
    if rules.is_empty() {
        node.remove(RULES);
    }
}

/// Returns true if an expression or a path selects a field of this name.
fn selects(text: &str, field: &str) -> bool {
    let is_part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = text.split('.').skip(1).filter_map(|after| {
        // An optional selection has a question mark.
        let name = after.trim_start_matches('?');
        let name = name.split(|c| !is_part_of_name(c));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tests pass a literal")]
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
            {"rule": "self.?secret.orValue('') != self.token"},
            {"rule": "self.token != ''", "messageExpression": "'not ' + self.secret"},
        ]);
        let login = json!({
            "properties": {"secret": text, "keys": text, "token": text, "secretary": text},
            "x-kubernetes-validations": rules,
        });
        let outside = json!([
            {"rule": "self.login.secret != ''"},
            {"rule": "has(self.login)"},
            {"rule": "self.secret != ''"},
        ]);
        let mut crd =
            crd(json!({"properties": {"login": login}, "x-kubernetes-validations": outside}));
        let here = spec(&mapping, &mut crd);
        let others = json!([{"rule": "has(self.login)"}, {"rule": "self.secret != ''"}]);
        assert_eq!(here["x-kubernetes-validations"], others);
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
    fn a_default_does_not_create_the_objects_around_the_earlier_place() {
        const MAPPING: VersionMapping = VersionMapping::new("v1beta1")
            .moves(&[
                ("spec.scale.replicas", "spec.replicas"),
                ("spec.scale.surge", "spec.surge"),
                ("spec.port.number", "spec.portNumber"),
                ("spec.host", "spec.http.host"),
            ])
            .only_in_storage(&["spec.scale.limits.cpu"]);
        let number = json!({"type": "integer"});
        let with_default = json!({"type": "integer", "default": 5});
        let scale = json!({
            "type": "object", "required": ["replicas"], "default": {"replicas": 1, "limits": {"cpu": 2}, "zones": 3},
            "properties": {
                "replicas": number, "zones": number, "surge": with_default,
                "limits": {"type": "object", "properties": {"cpu": number, "memory": number}},
            },
        });
        let port =
            json!({"type": "object", "properties": {"number": with_default, "name": number}});
        let mut crd = crd(json!({
            "type": "object", "required": ["port", "host"], "default": {"host": "a", "port": {"name": 1}},
            "properties": {"scale": scale, "port": port, "host": {"type": "string", "default": "b"}},
        }));
        let here = spec(&MAPPING, &mut crd);
        let scale = json!({
            "type": "object", "default": {"limits": {}, "zones": 3},
            "properties": {"zones": number, "limits": {"type": "object", "properties": {"memory": number}}},
        });
        let http =
            json!({"type": "object", "properties": {"host": {"type": "string", "default": "b"}}});
        let expected = json!({
            "type": "object", "required": ["port"], "default": {"http": {"host": "a"}, "port": {"name": 1}},
            "properties": {
                "scale": scale, "replicas": number, "surge": number, "http": http,
                // Its object always exists.
                "port": {"type": "object", "properties": {"name": number}}, "portNumber": with_default,
            },
        });
        assert_eq!(here, expected);
        assert!(MAPPING.problems(&crd).is_empty());
    }

    #[test]
    fn a_field_that_every_object_has_is_required_in_its_new_place() {
        const MAPPING: VersionMapping = VersionMapping::new("v1beta1").moves(&[
            ("spec.content.name", "spec.contentRef"),
            ("spec.host", "spec.http.host"),
            ("spec.zone", "spec.place.zone"),
        ]);
        let text = json!({"type": "string"});
        let place = json!({
            "type": "object", "default": {"floor": 1}, "properties": {"floor": {"type": "integer"}},
        });
        let content = json!({"type": "object", "required": ["name"], "properties": {"name": text}});
        let before = json!({
            "type": "object", "required": ["content", "host", "zone"],
            "properties": {"content": content, "host": text, "zone": text, "place": place},
        });
        let mut crd = crd(before);
        let here = spec(&MAPPING, &mut crd);
        assert_eq!(here["required"], json!(["content", "contentRef", "http"]));
        assert_eq!(here["properties"]["http"]["required"], json!(["host"]));
        let emptied = "all fields of `spec.content` are elsewhere; add it to `only_in_storage`";
        assert_eq!(MAPPING.problems(&crd), [emptied]);
        assert_eq!(
            here["properties"]["place"],
            json!({
                "type": "object", "default": {"floor": 1}, "properties": {"floor": {"type": "integer"}, "zone": text},
            }),
            "the default has no zone"
        );
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
        assert!(MAPPING.problems(&crd).is_empty());
        assert_eq!(crd["spec"]["versions"][1]["served"], true);
    }

    #[test]
    fn a_field_of_an_alternative_cannot_be_moved() {
        const MAPPING: VersionMapping =
            VersionMapping::new("v1beta1").moves(&[("spec.source.git", "spec.git")]);
        let source = json!({
            "type": "object", "properties": {"git": {}, "oci": {}}, "oneOf": [{"required": ["git"]}, {"required": ["oci"]}],
        });
        let mut crd = crd(json!({"type": "object", "properties": {"source": source}}));
        MAPPING.add_to(&mut crd);
        let problems = MAPPING.problems(&crd);
        assert!(
            problems[0].starts_with("`spec.source.git` is named in `oneOf`"),
            "{problems:?}"
        );
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
        let statuses = ".status.replicas";
        let scale =
            |specs: &str| json!({"specReplicasPath": specs, "statusReplicasPath": statuses});
        version["subresources"] = json!({"status": {}, "scale": scale(".spec.scale.replicas")});
        MAPPING.add_to(&mut crd);
        let here = &crd["spec"]["versions"][1];
        let columns = paths(&[".spec.http.host", ".spec.hostname", ".status.url"]);
        assert_eq!(here["additionalPrinterColumns"], columns);
        assert_eq!(here["selectableFields"], paths(&[".spec.size.zone"]));
        let expected = json!({"status": {}, "scale": scale(".spec.size.replicas")});
        assert_eq!(here["subresources"], expected);
        let without = VersionMapping::new("v1alpha1").only_in_storage(&["spec.scale"]);
        without.add_to(&mut crd);
        assert_eq!(
            crd["spec"]["versions"][2]["subresources"],
            json!({"status": {}})
        );
    }
}
