//! A CRD's structural schema, compiled: patterns built, numbers read, rules parsed.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Number, Value};

use crate::cel::CelRule;
use crate::ruleset::CompileError;

/// The JSON type that a schema node demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

impl JsonType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }
}

/// How an update correlates the items of a list with those of the list it replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Int32,
    Int64,
    DateTime,
    /// A format that constrains nothing: the API server ignores formats it does not know.
    Ignored,
}

/// One node of the schema.
#[derive(Default)]
pub(crate) struct Schema {
    pub(crate) json_type: Option<JsonType>,
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    pub(crate) format: Option<Format>,
    pub(crate) options: Option<Vec<Value>>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<Regex>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) list_type: ListType,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Box<Schema>>,
    pub(crate) preserves_unknown: bool,
    pub(crate) required: Vec<String>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) default: Option<Value>,
    pub(crate) rules: Vec<CelRule>,
}

/// A numeric bound, inclusive or not.
pub(crate) struct Bound {
    pub(crate) value: Number,
    pub(crate) exclusive: bool,
}

impl Schema {
    /// Compiles the schema of `version` out of a CRD.
    pub(crate) fn of_crd(crd: &Value, version: &str) -> Result<Self, CompileError> {
        let versions = crd
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let schema = versions
            .filter(|candidate| candidate["name"] == version)
            .find_map(|candidate| candidate.pointer("/schema/openAPIV3Schema"))
            .ok_or_else(|| CompileError::NoSchema {
                version: version.to_owned(),
            })?;
        Self::compile(schema, "")
    }

    /// Compiles one node. A keyword that this judge does not know stops the start: ignoring it would
    /// make the verdict differ from the API server's in silence.
    fn compile(node: &Value, at: &str) -> Result<Self, CompileError> {
        let fail = |problem: String| CompileError::Schema {
            at: printed(at),
            problem,
        };
        let fields = node
            .as_object()
            .ok_or_else(|| fail("must be an object".into()))?;
        let mut schema = Self::default();
        let (mut minimum_exclusive, mut maximum_exclusive) = (false, false);
        for (keyword, value) in fields {
            match keyword.as_str() {
                "description"
                | "title"
                | "example"
                | "externalDocs"
                | "x-kubernetes-map-type"
                | "x-kubernetes-list-map-keys" => {}
                "type" => {
                    schema.json_type = Some(
                        json_type(value).ok_or_else(|| fail(format!("unknown type {value}")))?,
                    );
                }
                "nullable" => schema.nullable = value == true,
                "x-kubernetes-int-or-string" => schema.int_or_string = value == true,
                "x-kubernetes-preserve-unknown-fields" => schema.preserves_unknown = value == true,
                "format" => schema.format = Some(format(value).map_err(fail)?),
                "enum" => schema.options = Some(value.as_array().cloned().unwrap_or_default()),
                "minimum" => schema.minimum = bound(value),
                "maximum" => schema.maximum = bound(value),
                "exclusiveMinimum" => minimum_exclusive = value == true,
                "exclusiveMaximum" => maximum_exclusive = value == true,
                "minLength" => schema.min_length = value.as_u64(),
                "maxLength" => schema.max_length = value.as_u64(),
                "minItems" => schema.min_items = value.as_u64(),
                "maxItems" => schema.max_items = value.as_u64(),
                "minProperties" => schema.min_properties = value.as_u64(),
                "maxProperties" => schema.max_properties = value.as_u64(),
                "pattern" => {
                    let source = value.as_str().unwrap_or_default();
                    schema.pattern = Some(pattern(source).map_err(fail)?);
                }
                "items" => schema.items = Some(Box::new(Self::compile(value, &format!("{at}[]"))?)),
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        let child = Self::compile(property, &join(at, name))?;
                        schema.properties.insert(name.clone(), child);
                    }
                }
                "additionalProperties" => {
                    schema.additional = Some(Box::new(Self::compile(value, &join(at, "*"))?));
                }
                "required" => schema.required = strings(value),
                "default" => schema.default = Some(value.clone()),
                "x-kubernetes-list-type" => {
                    schema.list_type = match value.as_str() {
                        Some("set") => ListType::Set,
                        Some("map") => {
                            ListType::Map(strings(&fields["x-kubernetes-list-map-keys"]))
                        }
                        _ => ListType::Atomic,
                    };
                }
                "x-kubernetes-validations" => {
                    for (index, rule) in value.as_array().into_iter().flatten().enumerate() {
                        schema.rules.push(CelRule::compile(rule, at, index)?);
                    }
                }
                other => return Err(fail(format!("keyword `{other}` is not supported"))),
            }
        }
        if let Some(bound) = &mut schema.minimum {
            bound.exclusive = minimum_exclusive;
        }
        if let Some(bound) = &mut schema.maximum {
            bound.exclusive = maximum_exclusive;
        }
        if at.is_empty() && !schema.rules.is_empty() {
            // A metadata change alone would bring such a rule back to life and block the removal of
            // a finalizer.
            return Err(fail(
                "a CEL rule must not sit at the root of an object".into(),
            ));
        }
        Ok(schema)
    }

    /// The schema of a field, by its own name or as one of the additional ones.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Visits every node below and including this one with its dotted name; list items and map
    /// values, which have no name of their own, are left out.
    pub(crate) fn visit_named<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&str, &'a Self)) {
        visit(name, self);
        for (field, schema) in &self.properties {
            schema.visit_named(&join(name, field), visit);
        }
    }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    }
}

fn printed(at: &str) -> String {
    if at.is_empty() {
        "the root".to_owned()
    } else {
        at.to_owned()
    }
}

fn json_type(value: &Value) -> Option<JsonType> {
    Some(match value.as_str()? {
        "array" => JsonType::Array,
        "boolean" => JsonType::Boolean,
        "integer" => JsonType::Integer,
        "number" => JsonType::Number,
        "object" => JsonType::Object,
        "string" => JsonType::String,
        _ => return None,
    })
}

fn format(value: &Value) -> Result<Format, String> {
    match value.as_str().unwrap_or_default() {
        "int32" => Ok(Format::Int32),
        "int64" => Ok(Format::Int64),
        "date-time" => Ok(Format::DateTime),
        // Written by schema generators for unsigned integers; unknown to the API server.
        "uint" | "uint8" | "uint16" | "uint32" | "uint64" => Ok(Format::Ignored),
        other => Err(format!("format `{other}` is not supported")),
    }
}

/// Compiles a pattern that means the same to RE2 and to Rust's `regex`. The two differ in their
/// character classes and flags, so a pattern that uses them is refused.
fn pattern(source: &str) -> Result<Regex, String> {
    let mut rest = source.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let differs = match c {
            '\\' => rest.next().is_none_or(char::is_alphanumeric),
            '(' => next == Some('?'),
            '[' => next == Some('['),
            _ => false,
        };
        if differs {
            return Err(format!(
                "pattern `{source}`: classes such as `\\d` or `[[:alpha:]]` and groups such as `(?i)` are not supported"
            ));
        }
    }
    Regex::new(source).map_err(|error| error.to_string())
}

fn bound(value: &Value) -> Option<Bound> {
    match value {
        Value::Number(value) => Some(Bound {
            value: value.clone(),
            exclusive: false,
        }),
        _ => None,
    }
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(String::from))
        .collect()
}
