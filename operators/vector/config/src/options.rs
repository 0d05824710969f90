//! Options of one component type, as a compiled schema.
//!
//! Vector ignores some unknown options and rejects others, depending on the Rust type that reads them. So two schemas
//! are compiled. One is closed where Vector rejects unknown options; its findings are errors. The other is closed
//! everywhere; Vector ignores the options that only this schema finds, which is reported as a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, ValidationError, Validator};
use lockstep_shared_validation::{FieldPath, LazyPath};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::aliases::Aliases;
use crate::catalogue_error::CatalogueError;
use crate::option_format;
use crate::option_format::FormatKeyword;
use crate::option_path::lazily_below;
use crate::vector_version::VectorVersion;

/// Mark of each node that is the name of a file, or has one below it: few are, and the others are not searched.
const WITH_FILES: &str = "withFiles";

/// Compiled schema of a value.
pub struct Options {
    /// Node of the catalogue.
    node: Value,
    /// Schema that is closed everywhere: a value that passes needs no further validation.
    everywhere: Validator,
    /// Schema that is closed where Vector rejects unknown options. Compiled on demand: most types never need it.
    as_vector: OnceLock<Validator>,
    definitions: BTreeMap<String, Value>,
    /// Version of Vector with these options.
    version: VectorVersion,
}

impl Options {
    /// Compiles a node of a catalogue of one version. `definition` returns the nodes that it refers to.
    ///
    /// # Errors
    ///
    /// If a definition is missing, or if the node is no schema.
    pub(crate) fn compile<'a>(
        node: &Value,
        version: VectorVersion,
        definition: impl Fn(&str) -> Option<&'a RawValue>,
    ) -> Result<Self, CatalogueError> {
        let (mut node, mut definitions) = (node.clone(), BTreeMap::new());
        collect(&node, &definition, &mut definitions)?;
        mark_files(&mut node, &mut definitions);
        Ok(Self {
            everywhere: validator(&node, &definitions, version, Closed::Everywhere)?,
            as_vector: OnceLock::new(),
            node,
            definitions,
            version,
        })
    }

    /// Returns the definition that a node refers to, if it is a reference.
    pub(crate) fn referenced(&self, node: &Value) -> Option<&Value> {
        let name = node["$ref"].as_str()?;
        self.definitions
            .get(name.trim_start_matches("#/definitions/"))
    }

    /// Returns true if an object of this kind has an option with this name in the catalogue.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.properties(name).next().is_some()
    }

    /// Returns true if an option, or each item of it, is an absolute URL.
    pub(crate) fn is_http_endpoint(&self, name: &str) -> bool {
        self.properties(name).any(|node| {
            let node = self.referenced(node).unwrap_or(node);
            let item = &node["items"];
            let item = self.referenced(item).unwrap_or(item);
            [node, item]
                .iter()
                .any(|node| node["form"] == option_format::HTTP_ENDPOINT)
        })
    }

    /// Returns the nodes of an option in all forms of the object.
    fn properties<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        let variants = self.node["variants"]
            .as_object()
            .into_iter()
            .flat_map(Map::values);
        let forms = self.node["anyOf"].as_array().into_iter().flatten();
        let all = variants.chain(forms).chain([&self.node]);
        all.filter_map(move |node| node["properties"].get(name))
    }

    /// Returns the node of the catalogue.
    pub(crate) fn node(&self) -> &Value {
        &self.node
    }

    /// Returns true if there are neither errors nor warnings.
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.everywhere.is_valid(value)
    }

    /// Returns the errors that Vector would report.
    pub(crate) fn errors<'a>(
        &'a self,
        value: &'a Value,
    ) -> impl Iterator<Item = ValidationError<'a>> {
        let as_vector = || {
            let validator = validator(
                &self.node,
                &self.definitions,
                self.version,
                Closed::AsVector,
            );
            validator.expect("the same schema was compiled before, closed everywhere")
        };
        self.as_vector.get_or_init(as_vector).iter_errors(value)
    }

    /// Returns the errors that Vector would report, and the options that it would ignore.
    pub(crate) fn warnings<'a>(
        &'a self,
        value: &'a Value,
    ) -> impl Iterator<Item = ValidationError<'a>> {
        self.everywhere.iter_errors(value)
    }

    /// Returns the field names that are valid in the object at a location.
    pub(crate) fn names(
        &self,
        value: &Value,
        location: &[LocationSegment<'_>],
    ) -> BTreeSet<String> {
        let (nodes, here) = self.nodes_at(value, location);
        let nodes = nodes.into_iter().flat_map(|node| self.plain(node, here));
        let properties = nodes.filter_map(|node| node["properties"].as_object());
        properties.flat_map(Map::keys).cloned().collect()
    }

    /// Returns the tag of the objects at a location of which one variant has this name.
    pub(crate) fn tag_of_variant<'a>(
        &'a self,
        value: &'a Value,
        location: &[LocationSegment<'_>],
        variant: &str,
    ) -> Option<&'a str> {
        let (mut nodes, _) = self.nodes_at(value, location);
        while let Some(node) = nodes.pop() {
            let node = self.referenced(node).unwrap_or(node);
            if node["variants"].get(variant).is_some() {
                return node["tag"].as_str();
            }
            nodes.extend(node["anyOf"].as_array().into_iter().flatten());
        }
        None
    }

    /// Returns the nodes for a location, and the value there.
    fn nodes_at<'a>(
        &'a self,
        value: &'a Value,
        location: &[LocationSegment<'_>],
    ) -> (Vec<&'a Value>, &'a Value) {
        let mut nodes = vec![&self.node];
        let mut here = value;
        for segment in location {
            let plain = nodes.into_iter().flat_map(|node| self.plain(node, here));
            nodes = plain.filter_map(|node| below(node, segment)).collect();
            here = match segment {
                LocationSegment::Property(name) => &here[&**name],
                LocationSegment::Index(index) => &here[*index],
            };
        }
        (nodes, here)
    }

    /// Returns the path and the value of every option that contains a file name.
    pub fn files<'a>(&'a self, value: &'a Value, path: &FieldPath) -> Vec<(FieldPath, &'a str)> {
        let mut found = Vec::new();
        self.files_below(&self.node, value, &path.lazy(), &mut found);
        found.sort();
        found.dedup();
        found
    }

    fn files_below<'a>(
        &'a self,
        node: &'a Value,
        value: &'a Value,
        path: &LazyPath<'_>,
        found: &mut Vec<(FieldPath, &'a str)>,
    ) {
        if node[WITH_FILES] != true {
            return;
        }
        for node in self.plain(node, value) {
            match value {
                Value::String(text) if node["file"] == true => found.push((path.to_path(), text)),
                Value::Object(fields) => {
                    for (name, value) in fields {
                        let segment = LocationSegment::from(name.as_str());
                        if let Some(node) = below(node, &segment) {
                            self.files_below(node, value, &lazily_below(path, name), found);
                        }
                    }
                }
                Value::Array(items) => {
                    let items = items.iter().enumerate();
                    for (index, value) in items.filter_map(|item| node.get("items").map(|_| item)) {
                        self.files_below(&node["items"], value, &path.index(index), found);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns a value without the nulls in place of optional values, and without those of options that Vector ignores.
    /// `aliases` are those of the options at the top level.
    pub(crate) fn without_nulls(&self, value: &Value, aliases: &BTreeMap<String, String>) -> Value {
        self.without_nulls_below(&[&self.node], value, aliases)
    }

    fn without_nulls_below(
        &self,
        nodes: &[&Value],
        value: &Value,
        aliases: &BTreeMap<String, String>,
    ) -> Value {
        let nodes: Vec<_> = nodes
            .iter()
            .flat_map(|node| self.plain(node, value))
            .collect();
        let none = BTreeMap::new();
        let kept = |segment: &LocationSegment<'_>, child: &Value| {
            let found: Vec<_> = nodes
                .iter()
                .filter_map(|node| below(node, segment))
                .collect();
            // Without a variant, it is not known which options are ignored.
            let is_ignored = found.is_empty()
                && !nodes.is_empty()
                && !nodes.iter().any(|node| node["closed"] == true);
            let is_optional = found.iter().any(|node| node["nullable"] == true);
            (!child.is_null() || !(is_ignored || is_optional))
                .then(|| self.without_nulls_below(&found, child, &none))
        };
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().filter_map(|(name, child)| {
                    let known = aliases.get(name).unwrap_or(name);
                    Some((name.clone(), kept(&known.as_str().into(), child)?))
                });
                Value::Object(fields.collect())
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .filter_map(|(index, child)| kept(&index.into(), child))
                    .collect()
            }
            _ => value.clone(),
        }
    }

    /// Returns the nodes that apply to a value, with references and alternatives resolved.
    fn plain<'a>(&'a self, node: &'a Value, value: &Value) -> Vec<&'a Value> {
        if let Some(node) = self.referenced(node) {
            return self.plain(node, value);
        }
        if let Some(tag) = node["tag"].as_str() {
            let variant = value[tag].as_str().or(node["without"].as_str());
            let variant = variant.and_then(|name| node["variants"].get(name));
            return variant.map_or(Vec::new(), |node| self.plain(node, value));
        }
        match node["anyOf"].as_array() {
            Some(choices) => choices
                .iter()
                .flat_map(|node| self.plain(node, value))
                .collect(),
            None => vec![node],
        }
    }
}

/// Returns the node that applies to a part of a value.
fn below<'a>(node: &'a Value, segment: &LocationSegment<'_>) -> Option<&'a Value> {
    match segment {
        LocationSegment::Property(name) => {
            let name = node["aliases"][&**name].as_str().unwrap_or(name);
            let property = node["properties"].get(name);
            property.or(node.get("additionalProperties"))
        }
        LocationSegment::Index(_) => node.get("items"),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Closed {
    AsVector,
    Everywhere,
}

/// Collects all definitions that a node refers to, directly or indirectly.
fn collect<'a>(
    node: &Value,
    definition: &impl Fn(&str) -> Option<&'a RawValue>,
    all: &mut BTreeMap<String, Value>,
) -> Result<(), CatalogueError> {
    match node {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str)
                && let Some(name) = name.strip_prefix("#/definitions/")
                && !all.contains_key(name)
            {
                let found = definition(name);
                let found = found.ok_or_else(|| CatalogueError::Definition(name.to_owned()))?;
                let found: Value = serde_json::from_str(found.get())?;
                all.insert(name.to_owned(), found.clone());
                collect(&found, definition, all)?;
            }
            let mut values = fields.values();
            values.try_for_each(|value| collect(value, definition, all))
        }
        Value::Array(items) => {
            let mut items = items.iter();
            items.try_for_each(|item| collect(item, definition, all))
        }
        _ => Ok(()),
    }
}

/// Marks the nodes that have the name of a file at or below them.
fn mark_files(node: &mut Value, definitions: &mut BTreeMap<String, Value>) {
    let mut with_files = BTreeSet::new();
    loop {
        let known = with_files.len();
        for (name, definition) in &mut *definitions {
            if mark(definition, &with_files) {
                with_files.insert(name.clone());
            }
        }
        if with_files.len() == known {
            break;
        }
    }
    mark(node, &with_files);
}

/// Marks a node and the nodes below it. Returns true if it has a file.
fn mark(node: &mut Value, with_files: &BTreeSet<String>) -> bool {
    let name = node["$ref"].as_str();
    let name = name.and_then(|name| name.strip_prefix("#/definitions/"));
    let is_known = name.is_some_and(|name| with_files.contains(name));
    let mut has_file = is_known || node["file"] == true;
    let Some(fields) = node.as_object_mut() else {
        return false;
    };
    for (name, part) in &mut *fields {
        let below: Vec<&mut Value> = match (name.as_str(), part) {
            ("properties" | "variants", Value::Object(named)) => named.values_mut().collect(),
            ("anyOf", Value::Array(choices)) => choices.iter_mut().collect(),
            ("items" | "additionalProperties", node) => vec![node],
            _ => continue,
        };
        for node in below {
            has_file |= mark(node, with_files);
        }
    }
    if has_file {
        fields.insert(WITH_FILES.to_owned(), true.into());
    }
    has_file
}

fn validator(
    node: &Value,
    definitions: &BTreeMap<String, Value>,
    version: VectorVersion,
    closed: Closed,
) -> Result<Validator, CatalogueError> {
    let mut schema = json_schema(node, closed);
    let named = definitions.iter();
    let named = named.map(|(name, node)| (name.clone(), json_schema(node, closed)));
    schema["definitions"] = named.collect::<Map<_, _>>().into();
    jsonschema::options()
        .with_draft(Draft::Draft7)
        .with_keyword("form", move |_, form, _| {
            Ok(Box::new(FormatKeyword::named(form, version)))
        })
        .with_keyword("names", |_, names, _| Ok(Box::new(Aliases::of(names))))
        .build(&schema)
        .map_err(|error| CatalogueError::Schema(error.to_string()))
}

/// Converts a node of the catalogue to JSON Schema.
fn json_schema(node: &Value, closed: Closed) -> Value {
    if let Some(tag) = node["tag"].as_str() {
        return tagged(node, tag, closed);
    }
    let mut out = Map::new();
    let aliases = node["aliases"].as_object();
    for (name, value) in node.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "closed" | "file" | WITH_FILES | "nullable" | "optionalParts" => continue,
            "aliases" => {
                out.insert("names".to_owned(), value.clone());
                continue;
            }
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let aliases = aliases.into_iter().flatten();
                let aliases = aliases.filter_map(|(alias, name)| {
                    let node = value.get(name.as_str()?)?;
                    Some((alias, node))
                });
                let properties = properties.chain(aliases);
                let properties =
                    properties.map(|(name, node)| (name.clone(), json_schema(node, closed)));
                properties.collect::<Map<_, _>>().into()
            }
            "items" | "additionalProperties" => json_schema(value, closed),
            "anyOf" => {
                let choices = value.as_array().into_iter().flatten();
                choices.map(|choice| json_schema(choice, closed)).collect()
            }
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    let is_closed = node["closed"] == true || closed == Closed::Everywhere;
    if is_closed && node["properties"].is_object() && node["additionalProperties"].is_null() {
        out.insert("additionalProperties".to_owned(), false.into());
    }
    let parts = node["optionalParts"].as_array().into_iter().flatten();
    let conditions: Vec<_> = parts.flat_map(|part| unread(part, closed)).collect();
    if !conditions.is_empty() {
        out.insert("allOf".to_owned(), conditions.into());
    }
    let mut names = node["enum"].as_array().into_iter().flatten();
    if node["type"] == "integer" || names.any(Value::is_i64) {
        out.insert("form".to_owned(), option_format::WHOLE_NUMBER.into());
    }
    out.into()
}

/// Returns conditions for an optional part: after a field that cannot be read, Vector accepts no further field of it.
fn unread(part: &Value, closed: Closed) -> Vec<Value> {
    let fields: Vec<_> = part.as_object().into_iter().flatten().collect();
    let breaks = fields.iter().enumerate().map(|(index, (name, node))| {
        let after = fields[index + 1..].iter();
        let after: Map<_, _> = after
            .map(|(name, _)| ((*name).clone(), false.into()))
            .collect();
        json!({
            "if": {"properties": {*name: json_schema(node, closed)}},
            "else": {"properties": after},
        })
    });
    breaks.collect()
}

/// Returns the schema of objects that are distinguished by one field (the tag). The tag is validated first, and then
/// only the variant that it names.
fn tagged(node: &Value, tag: &str, closed: Closed) -> Value {
    let variants = node["variants"].as_object().into_iter().flatten();
    let names: Vec<_> = variants.clone().map(|(name, _)| name.as_str()).collect();
    let mut cases = Vec::new();
    for (name, variant) in variants {
        let mut condition = json!({"properties": {tag: {"enum": [name]}}});
        if node["without"] != *name {
            condition["required"] = json!([tag]);
        }
        cases.push(json!({"if": condition, "then": json_schema(variant, closed)}));
    }
    let mut out = json!({"type": "object", "properties": {tag: {"enum": names}}, "allOf": cases});
    if node["without"].is_null() {
        out["required"] = json!([tag]);
    }
    out
}
