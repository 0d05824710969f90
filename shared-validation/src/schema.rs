//! A CRD's structural schema, compiled: patterns built, numbers read, rules parsed.

mod compile;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Number, Value};

use crate::cel::{CelRule, Reach};
use crate::format::Format;

/// A JSON type that a schema node may demand.
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

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "array" => Self::Array,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "object" => Self::Object,
            "string" => Self::String,
            _ => return None,
        })
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

/// A format that bounds a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    Int32,
    Int64,
    Float,
    Double,
}

/// What fields beside the named ones an object may have.
#[derive(Default)]
pub(crate) enum Additional {
    /// The schema does not say: they are unknown.
    #[default]
    Unstated,
    /// Any value, of which nothing below is known.
    Any,
    /// None.
    Forbidden,
    /// Values of this schema.
    Of(Box<Schema>),
}

/// One node of the schema.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of the schema language"
)]
#[derive(Default)]
pub(crate) struct Schema {
    /// What expressions call the field that it describes, if it is one that they can name.
    pub(crate) identifier: Option<String>,
    pub(crate) json_type: Option<JsonType>,
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    pub(crate) format: Option<Format>,
    /// The format as written, where it means anything.
    pub(crate) format_name: String,
    pub(crate) number_format: Option<NumberFormat>,
    pub(crate) options: Vec<Value>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) list_type: ListType,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Additional,
    pub(crate) preserves_unknown: bool,
    /// An object of Kubernetes' own shape: apiVersion, kind and metadata.
    pub(crate) embedded: bool,
    pub(crate) required: Vec<String>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
    pub(crate) default: Option<Value>,
    pub(crate) rules: Vec<CelRule>,
    /// What the rules of this node look at.
    pub(crate) reach: Reach,
    /// Whether this node or one below carries a rule.
    pub(crate) has_rules: bool,
    /// Whether it, or one below, is a list whose items have identities.
    pub(crate) has_identities: bool,
    /// Whether it, or one below, is an object of Kubernetes' own shape.
    pub(crate) has_embedded: bool,
}

/// A numeric bound, inclusive or not.
pub(crate) struct Bound {
    pub(crate) value: Number,
    pub(crate) exclusive: bool,
}

/// An expression that a text must match, and what was written.
pub(crate) struct Pattern {
    pub(crate) source: String,
    pub(crate) expression: Regex,
}

impl Schema {
    /// The schema of additional fields, where it is known.
    pub(crate) fn additional(&self) -> Option<&Self> {
        match &self.additional {
            Additional::Of(schema) => Some(schema),
            _ => None,
        }
    }

    /// The schema of a field, by its own name or as one of the additional ones.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional())
    }

    /// Whether it goes by `allOf`, `anyOf`, `oneOf` or `not`.
    pub(crate) fn has_alternatives(&self) -> bool {
        let several = [&self.all_of, &self.any_of, &self.one_of];
        self.not.is_some() || several.into_iter().any(|schemas| !schemas.is_empty())
    }

    /// Whether it says something of the fields of an object, and nothing of the object as a whole.
    pub(crate) fn speaks_of_fields_only(&self) -> bool {
        let counts = self.min_properties.is_some() || self.max_properties.is_some();
        !counts
            && !self.has_alternatives()
            && !self.embedded
            && self.options.is_empty()
            && self.rules.is_empty()
            && matches!(self.additional, Additional::Unstated)
    }

    /// Whether it says of an object that it is one, and nothing else.
    pub(crate) fn speaks_of_nothing(&self) -> bool {
        self.speaks_of_fields_only() && self.properties.is_empty() && self.required.is_empty()
    }

    /// Whether nothing lies below this node.
    pub(crate) fn is_scalar(&self) -> bool {
        self.properties.is_empty() && self.additional().is_none() && self.items.is_none()
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

/// The dotted name of a field of an object that has a dotted name itself.
pub(crate) fn join(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    }
}
