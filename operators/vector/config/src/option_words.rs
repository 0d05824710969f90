//! Words of the errors for options: the owner of an option, expected values, and paths.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use crate::component::ComponentKind;
use crate::removed;

/// Owner of options.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    /// Component type.
    Component(ComponentKind, &'a str),
    /// Vector itself: global options.
    Vector,
}

impl Owner<'_> {
    /// Returns what became of an option that an earlier version of Vector had.
    pub(crate) fn removed_option(self, path: &str) -> Option<&'static str> {
        match self {
            Self::Component(family, kind) => removed::option(family, kind, path),
            Self::Vector => None,
        }
    }

    /// Returns what became of a value that an earlier version of Vector had.
    pub(crate) fn removed_value(self, path: &str, value: &Value) -> Option<&'static str> {
        match self {
            Self::Component(family, _) => removed::value(family, path, value.as_str()?),
            Self::Vector => None,
        }
    }
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component(_, kind) => f.write_str(kind),
            Self::Vector => f.write_str("Vector"),
        }
    }
}

pub(crate) fn words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => article(&kind.to_string()),
        TypeKind::Multiple(kinds) => {
            let kinds: Vec<_> = kinds
                .iter()
                .map(|kind| article(&kind.to_string()))
                .collect();
            kinds.join(" or ")
        }
    }
}

pub(crate) fn article(kind: &str) -> String {
    match kind {
        "object" => "a mapping".to_owned(),
        "array" => "a list".to_owned(),
        "integer" => "an integer".to_owned(),
        other => format!("a {other}"),
    }
}

pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// Returns the message for a value beyond a limit of its size.
pub(crate) fn limit(kind: &ValidationErrorKind) -> Option<String> {
    Some(match kind {
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MinItems { limit } => count("at least", *limit, "item"),
        ValidationErrorKind::MaxItems { limit } => count("at most", *limit, "item"),
        ValidationErrorKind::MinLength { limit } => count("at least", *limit, "character"),
        ValidationErrorKind::MaxLength { limit } => count("at most", *limit, "character"),
        _ => return None,
    })
}

/// Returns the message for a value with too few or too many parts.
fn count(bound: &str, limit: u64, noun: &str) -> String {
    let ending = if limit == 1 { "" } else { "s" };
    format!("must have {bound} {limit} {noun}{ending}")
}

pub(crate) fn one_of(options: &Value) -> String {
    let options = options.as_array().into_iter().flatten();
    let options: Vec<_> = options
        .map(|option| format!("`{}`", plain(option)))
        .collect();
    match &options[..] {
        [option] => option.clone(),
        options => format!("one of {}", options.join(", ")),
    }
}

/// Returns a string without quotes, and other values as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a path in a component, separated by dots.
pub(crate) fn dotted(location: &[LocationSegment<'_>], name: Option<&str>) -> String {
    let names = location.iter().filter_map(|segment| match segment {
        LocationSegment::Property(name) => Some(&**name),
        LocationSegment::Index(_) => None,
    });
    let names: Vec<_> = names.chain(name).collect();
    names.join(".")
}
