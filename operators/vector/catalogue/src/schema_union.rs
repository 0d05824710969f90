//! Alternatives for a value. `allOf`, `oneOf` and references to flattened structures are expanded, so that each object
//! lists all of its fields in one place.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde_json::{Map, Value, json};

/// Alternative for a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SchemaAlternative {
    Object(Object),
    /// Node of the catalogue for any other value.
    Other(Value),
}

/// Object with all of its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    pub(crate) properties: Map<String, Value>,
    pub(crate) required: BTreeSet<String>,
    /// Aliases of fields.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Node for the values of additional fields, if these are allowed.
    pub(crate) others: Option<Value>,
    /// Fields of each optional part.
    pub(crate) optional_parts: Vec<Map<String, Value>>,
}

impl Object {
    fn with(mut self, other: &Self) -> Self {
        self.properties.extend(other.properties.clone());
        self.required.extend(other.required.iter().cloned());
        self.aliases.extend(other.aliases.clone());
        self.others = self.others.or_else(|| other.others.clone());
        self.optional_parts
            .extend(other.optional_parts.iter().cloned());
        self
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the value of a field that may have only one value.
    fn constant(&self, field: &str) -> Option<&Value> {
        match self.properties.get(field)?["enum"].as_array()?.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    fn to_value(&self, is_closed: bool) -> Value {
        let mut out = Map::new();
        out.insert("type".to_owned(), "object".into());
        if is_closed {
            out.insert("closed".to_owned(), true.into());
        }
        if !self.properties.is_empty() {
            out.insert("properties".to_owned(), self.properties.clone().into());
        }
        if !self.required.is_empty() {
            out.insert("required".to_owned(), json!(self.required));
        }
        if !self.aliases.is_empty() {
            out.insert("aliases".to_owned(), json!(self.aliases));
        }
        if let Some(others) = &self.others {
            out.insert("additionalProperties".to_owned(), others.clone());
        }
        if !self.optional_parts.is_empty() {
            out.insert("optionalParts".to_owned(), json!(self.optional_parts));
        }
        out.into()
    }
}

/// Returns the intersection: values that match both an alternative of the first list and one of the second.
pub(crate) fn both(
    first: &[SchemaAlternative],
    second: &[SchemaAlternative],
) -> anyhow::Result<Vec<SchemaAlternative>> {
    let mut out = Vec::new();
    for a in first {
        for b in second {
            out.push(match (a, b) {
                (SchemaAlternative::Object(a), SchemaAlternative::Object(b)) => {
                    SchemaAlternative::Object(a.clone().with(b))
                }
                (SchemaAlternative::Object(empty), other)
                | (other, SchemaAlternative::Object(empty))
                    if empty.is_empty() =>
                {
                    other.clone()
                }
                _ => bail!("cannot be both {a:?} and {b:?}"),
            });
        }
    }
    Ok(out)
}

/// Returns the object for an optional structure that is flattened into another one. Vector also treats the structure as
/// absent if it cannot read a field of it. In this case, Vector accepts the names of the fields up to and including
/// this field.
pub(crate) fn optional_part(alternatives: &[SchemaAlternative]) -> Object {
    let objects = alternatives
        .iter()
        .filter_map(|alternative| match alternative {
            SchemaAlternative::Object(object) => Some(object),
            SchemaAlternative::Other(_) => None,
        });
    let mut out = Object::default();
    for object in objects {
        let names = object.properties.keys();
        out.properties
            .extend(names.map(|name| (name.clone(), json!({}))));
        out.optional_parts.push(object.properties.clone());
    }
    out
}

/// Returns a node that accepts a value if any of the alternatives accepts it.
///
/// `is_closed` returns true if Vector rejects unknown fields of an object. Its argument is the name of the variant, if
/// several exist.
pub(crate) fn any(
    alternatives: &[SchemaAlternative],
    is_closed: &dyn Fn(Option<&str>) -> bool,
) -> anyhow::Result<Value> {
    let mut objects: Vec<&Object> = Vec::new();
    let mut names = Vec::new();
    let mut others: Vec<Value> = Vec::new();
    for alternative in alternatives {
        match alternative {
            SchemaAlternative::Object(object) if !objects.contains(&object) => objects.push(object),
            SchemaAlternative::Other(value) if value["enum"].is_array() => {
                names.extend(value["enum"].as_array().into_iter().flatten().cloned());
            }
            SchemaAlternative::Other(value) if !others.contains(value) => {
                others.push(value.clone());
            }
            _ => {}
        }
    }
    let mut parts = Vec::new();
    if !names.is_empty() {
        parts.push(json!({ "enum": names }));
    }
    parts.append(&mut others);
    parts.append(&mut any_object(&objects, is_closed));
    match parts.len() {
        0 => bail!("nothing is allowed"),
        1 => Ok(parts.remove(0)),
        _ => Ok(json!({ "anyOf": parts })),
    }
}

/// Returns the nodes for alternative objects. If the value of one field distinguishes them, it selects the variant;
/// otherwise, each object is tried.
fn any_object(objects: &[&Object], is_closed: &dyn Fn(Option<&str>) -> bool) -> Vec<Value> {
    let plain = || {
        objects
            .iter()
            .map(|object| object.to_value(is_closed(None)))
    };
    let [first, _, ..] = objects else {
        return plain().collect();
    };
    let mut fields = first.properties.keys();
    let tag = fields.find(|field| is_tag(objects, field));
    let Some(tag) = tag else {
        return plain().collect();
    };
    let mut variants: Map<String, Value> = Map::new();
    let mut without = None;
    let mut named: Vec<(String, Vec<&Object>)> = Vec::new();
    for object in objects {
        let value = object.constant(tag).and_then(Value::as_str);
        let value = value.unwrap_or_default().to_owned();
        if !object.required.contains(tag) {
            without = Some(value.clone());
        }
        match named.iter_mut().find(|(name, _)| *name == value) {
            Some((_, same)) => same.push(object),
            None => named.push((value, vec![object])),
        }
    }
    for (name, same) in named {
        let mut parts: Vec<_> = same
            .iter()
            .map(|object| {
                let mut object = (*object).clone();
                object.properties[tag] = json!({});
                object.to_value(is_closed(Some(&name)))
            })
            .collect();
        let variant = match parts.len() {
            1 => parts.remove(0),
            _ => json!({ "anyOf": parts }),
        };
        variants.insert(name, variant);
    }
    let mut out = json!({"tag": tag, "variants": variants});
    if let Some(without) = without {
        out["without"] = without.into();
    }
    vec![out]
}

/// Returns true if a field distinguishes the objects: each has one constant string for it, not all are equal, and the
/// field is optional for at most one value.
fn is_tag(objects: &[&Object], field: &str) -> bool {
    let mut values = BTreeSet::new();
    let mut without = BTreeSet::new();
    for object in objects {
        let Some(value) = object.constant(field).and_then(Value::as_str) else {
            return false;
        };
        values.insert(value);
        if !object.required.contains(field) {
            without.insert(value);
        }
    }
    values.len() > 1 && without.len() < 2
}
