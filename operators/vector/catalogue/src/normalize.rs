//! Schema → catalogue: without descriptions and nulls, and with all fields of an object in one node.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::schema::{Schema, target};
use crate::schema_union;
use crate::schema_union::{Object, SchemaAlternative};

/// Bounds of Rust integer types. Vector does not check other bounds of the schema when it reads a configuration.
const OF_TYPES: [f64; 9] = [
    0.0,
    1.0,
    255.0,
    65_535.0,
    4_294_967_295.0,
    -32_768.0,
    32_767.0,
    -2_147_483_648.0,
    2_147_483_647.0,
];

/// Keywords that are copied for a value that is not an object.
const KEPT_KEYWORDS: [&str; 2] = ["minLength", "maxLength"];

/// Converts nodes of the schema to nodes of the catalogue.
pub(crate) struct Normalizer<'a> {
    schema: &'a Schema,
    corrections: Corrections<'a>,
    /// Places of the corrections that were applied.
    visited: RefCell<BTreeSet<String>>,
    /// Definitions that other nodes refer to.
    pub(crate) definitions: BTreeMap<String, Value>,
}

/// Corrections of missing or incorrect information in the schema, by place: the name of a definition, or a definition,
/// `#` and the path of a field in it; after `|` the name of a variant.
#[derive(Clone, Copy)]
pub(crate) struct Corrections<'a> {
    /// Places where Vector rejects unknown options.
    pub(crate) closed: &'a BTreeMap<String, bool>,
    /// Aliases of options.
    pub(crate) aliases: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// Values that Vector accepts besides those in the schema.
    pub(crate) also: &'a BTreeMap<String, Value>,
    /// Default variant for a value without its tag, by tag.
    pub(crate) defaults: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// Options that Vector requires besides those of the schema.
    pub(crate) required: &'a BTreeMap<String, BTreeSet<String>>,
    /// Formats of the keys of mappings.
    pub(crate) keys: &'a BTreeMap<String, String>,
    /// Options that contain a file name, although the schema describes them as any string.
    pub(crate) files: &'a BTreeSet<String>,
    /// Nodes that replace incorrect nodes of the schema.
    pub(crate) replaced: &'a BTreeMap<String, Value>,
    /// If true, an optional value may be null.
    pub(crate) accepts_null: bool,
}

impl<'a> Normalizer<'a> {
    pub(crate) fn new(schema: &'a Schema, corrections: Corrections<'a>) -> Self {
        Self {
            schema,
            corrections,
            visited: RefCell::default(),
            definitions: BTreeMap::new(),
        }
    }

    /// Returns the places of corrections that do not exist in the schema.
    pub(crate) fn unused_corrections(&self) -> Vec<&'a String> {
        let Corrections {
            closed,
            aliases,
            also,
            defaults,
            required,
            keys,
            replaced,
            files,
            accepts_null: _,
        } = self.corrections;
        let paths = closed.keys().chain(files).chain(replaced.keys());
        let paths = paths.chain(aliases.keys()).chain(also.keys());
        let paths = paths.chain(defaults.keys()).chain(required.keys());
        let paths = paths.chain(keys.keys());
        let visited = self.visited.borrow();
        paths.filter(|path| !visited.contains(*path)).collect()
    }

    fn visit(&self, path: &str) {
        self.visited.borrow_mut().insert(path.to_owned());
    }

    fn is_closed(&self, path: &str, variant: Option<&str>) -> bool {
        let variant = variant.map(|variant| format!("{path}|{variant}"));
        let mut paths = variant.iter().map(String::as_str).chain([path]);
        let found = paths.find(|path| self.corrections.closed.contains_key(*path));
        found.inspect(|path| self.visit(path)).is_some()
    }

    /// Converts a node of the schema.
    pub(crate) fn node(&mut self, node: &Value, path: &str) -> anyhow::Result<Value> {
        if let Some(replaced) = self.corrections.replaced.get(path) {
            self.visit(path);
            return Ok(replaced.clone());
        }
        let mut alternatives = self.alternatives(node, path, false)?;
        if let Some(also) = self.corrections.also.get(path) {
            self.visit(path);
            alternatives.push(SchemaAlternative::Other(also.clone()));
        }
        let is_closed = |variant: Option<&str>| self.is_closed(path, variant);
        schema_union::any(&alternatives, &is_closed).with_context(|| path.to_owned())
    }

    /// Converts the node of a field or an item, which may be null if the schema and the version of Vector allow it.
    pub(crate) fn child(&mut self, node: &Value, path: &str) -> anyhow::Result<Value> {
        let mut child = self.node(node, path)?;
        if self.corrections.accepts_null && self.is_nullable(node)? {
            child["nullable"] = true.into();
        }
        Ok(child)
    }

    /// Returns true if a node allows null.
    fn is_nullable(&self, node: &Value) -> anyhow::Result<bool> {
        if let Some(name) = target(node) {
            return Ok(inner(name) != name || self.is_nullable(self.schema.definition(name)?)?);
        }
        let types = node["type"].as_array().into_iter().flatten();
        if types.chain([&node["type"]]).any(|name| name == "null") {
            return Ok(true);
        }
        let choices = node["oneOf"].as_array().or(node["anyOf"].as_array());
        for choice in choices.into_iter().flatten() {
            if self.is_nullable(choice)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the alternatives of a node, except null. If `is_part` is true, references are resolved, because the node
    /// is part of another one.
    pub(crate) fn alternatives(
        &mut self,
        node: &Value,
        path: &str,
        is_part: bool,
    ) -> anyhow::Result<Vec<SchemaAlternative>> {
        if node["type"] == "null" {
            return Ok(Vec::new());
        }
        if let Some(name) = target(node) {
            if is_part {
                let schema = self.schema;
                return self.alternatives(schema.definition(name)?, inner(name), true);
            }
            return Ok(vec![SchemaAlternative::Other(self.refer(name)?)]);
        }
        let mut own = vec![SchemaAlternative::Object(Object::default())];
        let parts = node["allOf"].as_array().into_iter().flatten();
        // Which options exclude each other is validated with the start of Vector.
        for part in parts.filter(|part| part["_required_one_of_constraint"] != true) {
            let part = self.alternatives(part, path, true)?;
            own = schema_union::both(&own, &part)?;
        }
        let choices = node["oneOf"].as_array().or(node["anyOf"].as_array());
        if let Some(choices) = choices {
            let mut any = Vec::new();
            for choice in choices {
                any.append(&mut self.alternatives(choice, path, is_part)?);
            }
            if is_part && choices.iter().any(|choice| choice["type"] == "null") {
                any = vec![SchemaAlternative::Object(schema_union::optional_part(&any))];
            }
            own = schema_union::both(&own, &any)?;
        }
        if node["properties"].is_object() {
            let object = self.object(node, path)?;
            return schema_union::both(&own, &[SchemaAlternative::Object(object)]);
        }
        if node["allOf"].is_array() || choices.is_some() {
            return Ok(own);
        }
        let is_map = node["additionalProperties"].is_object();
        if is_map && is_part {
            let others = self.child(&node["additionalProperties"], &format!("{path}.*"))?;
            let others = Some(others);
            let object = Object {
                others,
                ..Object::default()
            };
            return Ok(vec![SchemaAlternative::Object(object)]);
        }
        Ok(vec![SchemaAlternative::Other(self.plain(node, path)?)])
    }

    fn object(&mut self, node: &Value, path: &str) -> anyhow::Result<Object> {
        let mut object = Object::default();
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            let joint = if path.contains('#') { '.' } else { '#' };
            let mut property = self.child(property, &format!("{path}{joint}{name}"))?;
            if self.corrections.files.contains(name) && property["type"] == "string" {
                self.visit(name);
                property["file"] = true.into();
            }
            object.properties.insert(name.clone(), property);
        }
        if let Some(aliases) = self.corrections.aliases.get(path) {
            self.visit(path);
            object.aliases = aliases.clone();
        }
        let required = node["required"].as_array().into_iter().flatten();
        object.required = required
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        self.correct_required(&mut object, path);
        if node["additionalProperties"].is_object() {
            let others = self.child(&node["additionalProperties"], &format!("{path}.*"))?;
            object.others = Some(others);
        }
        Ok(object)
    }

    /// Corrects the list of required fields of an object.
    fn correct_required(&self, object: &mut Object, path: &str) {
        let defaults = self.corrections.defaults.get(path);
        for (tag, variant) in defaults.into_iter().flatten() {
            let is_variant = |object: &Object| {
                let value = object.properties.get(tag);
                value.is_some_and(|value| value["enum"] == json!([variant]))
            };
            if is_variant(object) && object.required.remove(tag) {
                self.visit(path);
            }
        }
        let required = self.corrections.required.get(path);
        for name in required.into_iter().flatten() {
            if object.properties.contains_key(name) && object.required.insert(name.clone()) {
                self.visit(path);
            }
        }
    }

    /// Converts a node for a value that is not an object with fixed fields.
    fn plain(&mut self, node: &Value, path: &str) -> anyhow::Result<Value> {
        if !node["const"].is_null() {
            return Ok(json!({"enum": [node["const"]]}));
        }
        if node["enum"].is_array() {
            return Ok(json!({"enum": node["enum"]}));
        }
        let mut out = Map::new();
        let types: Vec<_> = match &node["type"] {
            Value::Array(types) => types.iter().filter(|name| **name != "null").collect(),
            Value::Null => Vec::new(),
            one => vec![one],
        };
        match types.as_slice() {
            [] => {}
            [one] => drop(out.insert("type".to_owned(), (*one).clone())),
            many => drop(out.insert("type".to_owned(), json!(many))),
        }
        let is_integer = out.get("type").is_some_and(|kind| kind == "integer");
        for bound in ["minimum", "maximum"] {
            let limit = node[bound].as_f64();
            if let Some(limit) = limit.filter(|limit| is_integer && OF_TYPES.contains(limit)) {
                #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
                out.insert(bound.to_owned(), (limit as i64).into());
            }
        }
        for name in KEPT_KEYWORDS {
            if !node[name].is_null() {
                out.insert(name.to_owned(), node[name].clone());
            }
        }
        if node["items"].is_object() {
            let items = self.child(&node["items"], &format!("{path}[]"))?;
            out.insert("items".to_owned(), items);
        }
        if node["additionalProperties"].is_object() {
            let others = self.child(&node["additionalProperties"], &format!("{path}.*"))?;
            out.insert("additionalProperties".to_owned(), others);
        }
        if let Some(form) = self.corrections.keys.get(path) {
            self.visit(path);
            out.insert("propertyNames".to_owned(), json!({ "form": form }));
        }
        Ok(out.into())
    }

    /// Returns a reference to a definition, or the target of the definition if this is again a reference.
    fn refer(&mut self, name: &str) -> anyhow::Result<Value> {
        let plain = plain(name);
        if !self.definitions.contains_key(&plain) {
            // A placeholder, so that a definition that refers to itself terminates.
            self.definitions.insert(plain.clone(), Value::Null);
            let schema = self.schema;
            let node = self.node(schema.definition(name)?, inner(name))?;
            self.definitions.insert(plain.clone(), node);
        }
        let definition = &self.definitions[&plain];
        if definition["$ref"].is_string() {
            return Ok(definition.clone());
        }
        Ok(json!({"$ref": format!("#/definitions/{plain}")}))
    }
}

/// Returns the type `T` for the name `Option<T>`, and any other name unchanged.
fn inner(name: &str) -> &str {
    let optional = name.strip_prefix("core::option::Option<");
    optional
        .and_then(|name| name.strip_suffix('>'))
        .unwrap_or(name)
}

/// Returns a name in a form that is valid in a reference.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    name.chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect()
}
