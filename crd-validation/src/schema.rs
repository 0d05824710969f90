//! Compiled structural schema of a CRD.

mod compile;
pub(crate) mod projection;
mod properties;
pub(crate) mod scale;
pub(crate) mod unknown_keywords;

use regex::Regex;
use serde_json::{Number, Value};

use crate::format::Format;
use crate::schema::properties::Properties;

pub(crate) use crate::json::types::JsonType;

/// List type: how an update correlates the items of a list with those of the old list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Format that limits the range of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    Int32,
    Int64,
    Float,
    Double,
}

/// Schema of fields that are not listed in `properties`.
#[derive(Default)]
pub(crate) enum Additional {
    /// Not specified: such fields are unknown.
    #[default]
    Unstated,
    /// Any value is allowed. Fields below it are unknown.
    Any,
    /// No such fields are allowed.
    Forbidden,
    /// Values of this schema are allowed.
    Of(Box<Schema>),
}

/// Schema node.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of the schema language"
)]
#[derive(Default)]
pub(crate) struct Schema {
    /// Name of the field in CEL expressions; `None` if expressions cannot refer to it.
    pub(crate) identifier: Option<String>,
    /// Second name of the field, if its identifier is an escaped reserved word.
    pub(crate) reserved_word: Option<String>,
    pub(crate) json_type: Option<JsonType>,
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    pub(crate) format: Option<Format>,
    /// Format as written; empty if it has no effect.
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
    pub(crate) properties: Properties<Self>,
    pub(crate) additional: Additional,
    pub(crate) preserves_unknown: bool,
    /// If true, the value is a Kubernetes object with apiVersion, kind and metadata.
    pub(crate) embedded: bool,
    pub(crate) required: Vec<String>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
    pub(crate) default: Option<Value>,
    /// Entries of `x-kubernetes-validations` as written.
    pub(crate) validations: Vec<Value>,
    /// Number of large patterns at this node and below it.
    pub(crate) large_patterns: usize,
    /// If true, this node or a node below it has a rule.
    pub(crate) has_rules: bool,
    /// If true, this node or a node below it is a list of type `set` or `map`.
    pub(crate) has_identities: bool,
    /// If true, this node or a node below it is an embedded resource.
    pub(crate) has_embedded: bool,
}

/// Numeric bound, inclusive or exclusive.
pub(crate) struct Bound {
    pub(crate) value: Number,
    pub(crate) exclusive: bool,
}

/// Regular expression that a string must match, and its source.
pub(crate) struct Pattern {
    pub(crate) source: String,
    pub(crate) expression: Regex,
}

impl Schema {
    /// Returns true if a CEL expression can refer to the field by a name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.identifier.as_deref() == Some(name) || self.reserved_word.as_deref() == Some(name)
    }

    /// Returns the schema of additional fields, if it is specified.
    pub(crate) fn additional(&self) -> Option<&Self> {
        match &self.additional {
            Additional::Of(schema) => Some(schema),
            _ => None,
        }
    }

    /// Returns the schema of a field, from `properties` or `additionalProperties`.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional())
    }

    /// Returns true if the node uses `allOf`, `anyOf`, `oneOf` or `not`.
    pub(crate) fn has_alternatives(&self) -> bool {
        let several = [&self.all_of, &self.any_of, &self.one_of];
        self.not.is_some() || several.into_iter().any(|schemas| !schemas.is_empty())
    }

    /// Returns true if the node restricts only the fields of an object and not the object as a whole.
    pub(crate) fn restricts_fields_only(&self) -> bool {
        let counts = self.min_properties.is_some() || self.max_properties.is_some();
        !counts
            && !self.has_alternatives()
            && !self.embedded
            && self.options.is_empty()
            && self.validations.is_empty()
            && matches!(self.additional, Additional::Unstated)
    }

    /// Returns true if the node requires an object and nothing else.
    pub(crate) fn restricts_nothing(&self) -> bool {
        self.restricts_fields_only() && self.properties.is_empty() && self.required.is_empty()
    }

    /// Returns true if there are no nodes below this one.
    pub(crate) fn is_scalar(&self) -> bool {
        self.properties.is_empty() && self.additional().is_none() && self.items.is_none()
    }
}

/// Joins the dotted path of an object and the name of its field.
pub(crate) fn join(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    }
}
