//! Text → table, by the parsers that Vector uses.
//!
//! YAML 1.1 and 1.2 disagree about many scalars, and so do parsers. `serde_yaml` is no longer maintained; it is used
//! here, and only here, because Vector reads its configuration with it. The text is the user's own.

use std::path::Path;

use lockstep_shared_validation::FieldPath;
use lockstep_vector_api::VectorVersion;
use serde_json::{Map, Number, Value};
use toml::Table;

use crate::configuration::{nesting, unreadable};

/// Levels of a text that the parsers of YAML and JSON read.
const LEVELS: usize = 128;

/// Levels of a text that the parser of TOML reads.
const TOML_LEVELS: usize = 80;

/// Beginning of the errors of the parsers of YAML and JSON about the depth of a text.
const RECURSION: &str = "recursion limit exceeded";

/// Beginning of the error of the parser of TOML about the depth of a text.
const TOML_RECURSION: &str = "cannot recurse further";

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    Toml,
    Json,
    Yaml,
}

impl Format {
    /// Returns the format that the extension of a file selects.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// Returns the format of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Field of a table for a null, which TOML does not have. No text contains it.
const NULL: &str = "\u{0}null";

/// Parses a text as a version of Vector does.
pub(crate) fn parse(text: &str, format: Format, version: VectorVersion) -> Result<Table, String> {
    match format {
        Format::Json if version >= VectorVersion::V0_58 => {
            let read: Value =
                serde_json::from_str(text).map_err(|error| describe_json_error(&error))?;
            let read = serde_yaml::to_value(read).map_err(|error| describe_yaml_error(&error))?;
            to_table(read, version)
        }
        Format::Toml => toml::from_str(text).map_err(|error| describe_toml_error(text, &error)),
        Format::Json => serde_json::from_str(text).map_err(|error| {
            // The parser of the TOML data model does not name the key of a value that it cannot represent.
            let read = serde_json::from_str::<serde_yaml::Value>(text).ok();
            let described = read
                .filter(|_| error.is_data())
                .map(|read| unreadable::describe(&read));
            described.unwrap_or_else(|| describe_json_error(&error))
        }),
        Format::Yaml => {
            // The parser reads the whole text before it counts, and takes a time that grows with the square of the depth.
            if nesting::is_too_deep(text) {
                return Err(too_deep(LEVELS));
            }
            let mut read: serde_yaml::Value =
                serde_yaml::from_str(text).map_err(|error| describe_yaml_error(&error))?;
            read.apply_merge()
                .map_err(|error| describe_yaml_error(&error))?;
            to_table(read, version)
        }
    }
}

/// Converts a value to the data model of TOML. From 0.58 on, Vector has another one: with nulls, and without infinite numbers.
fn to_table(mut value: serde_yaml::Value, version: VectorVersion) -> Result<Table, String> {
    if version >= VectorVersion::V0_58
        && let Some(fields) = value.as_mapping_mut()
    {
        for field in fields.values_mut() {
            mark_nulls(field)?;
        }
    }
    serde_yaml::from_value(value.clone()).map_err(|_| unreadable::describe(&value))
}

fn mark_nulls(value: &mut serde_yaml::Value) -> Result<(), String> {
    match value {
        serde_yaml::Value::Null => {
            let mark = [(NULL.into(), true.into())];
            *value = serde_yaml::Mapping::from_iter(mark).into();
            Ok(())
        }
        serde_yaml::Value::Number(number)
            if number.as_f64().is_some_and(|float| !float.is_finite()) =>
        {
            Err(format!(
                "Vector does not accept the number {number}; write a finite one"
            ))
        }
        serde_yaml::Value::Sequence(items) => items.iter_mut().try_for_each(mark_nulls),
        serde_yaml::Value::Mapping(fields) => fields.values_mut().try_for_each(mark_nulls),
        _ => Ok(()),
    }
}

/// Converts a value to JSON, which has neither infinite numbers nor one that is not a number. The largest number takes
/// the place of the latter, and the one before it the place of an infinite one: where Vector accepts a number of this
/// size, it accepts an infinite one, too, and where it compares a number with a minimum or a maximum, it rejects one that
/// is not a number.
pub(crate) fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => {
            let number = if number.is_nan() {
                f64::MAX
            } else if number.is_infinite() {
                f64::MAX.next_down().copysign(number)
            } else {
                number
            };
            Number::from_f64(number).map_or(Value::Null, Value::Number)
        }
        toml::Value::Boolean(value) => value.into(),
        // To Vector, a date is no text.
        toml::Value::Datetime(date) => {
            Map::from_iter([("date".to_owned(), date.to_string().into())]).into()
        }
        toml::Value::Array(items) => items.into_iter().map(to_json).collect(),
        toml::Value::Table(table) if table.contains_key(NULL) => Value::Null,
        toml::Value::Table(table) => {
            let fields = table
                .into_iter()
                .map(|(name, value)| (name, to_json(value)));
            fields.collect::<Map<_, _>>().into()
        }
    }
}

/// Describes the error of a text with more than this number of levels.
fn too_deep(levels: usize) -> String {
    format!(
        "lists and mappings contain each other too deeply; Vector reads at most {levels} levels"
    )
}

/// Describes an error of the TOML parser, with its line and column.
fn describe_toml_error(text: &str, error: &toml::de::Error) -> String {
    let location = error.span().and_then(|span| {
        let before = text.get(..span.start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Some(format!("line {line}, column {column}: "))
    });
    let location = location.unwrap_or_default();
    match error.message() {
        message if message.starts_with(TOML_RECURSION) => {
            format!("{location}{}", too_deep(TOML_LEVELS))
        }
        "duplicate key" => format!("{location}the key is duplicated; remove one of them"),
        message => format!(
            "{location}the TOML cannot be read: {message}; correct the syntax, or name the file .yaml or .json if it has another format"
        ),
    }
}

/// Describes an error of the JSON parser, with its line and column.
pub(crate) fn describe_json_error(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    if message.starts_with(RECURSION) {
        let (line, column) = (error.line(), error.column());
        return format!("line {line}, column {column}: {}", too_deep(LEVELS));
    }
    format!(
        "line {}, column {}: the JSON cannot be read: {message}; correct the syntax",
        error.line(),
        error.column()
    )
}

/// Describes an error of the YAML parser, with its line and column.
fn describe_yaml_error(error: &serde_yaml::Error) -> String {
    let location = error.location();
    let location = location.map(|at| format!("line {}, column {}: ", at.line(), at.column()));
    let location = location.unwrap_or_default();
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    if message.starts_with(RECURSION) {
        return format!("{location}{}", too_deep(LEVELS));
    }
    match message.rsplit_once("duplicate entry with key ") {
        Some((_, key)) => format!("{location}the key {key} is duplicated; remove one of them"),
        None => format!("{location}the YAML cannot be read: {message}; correct the syntax"),
    }
}

/// Rejects duplicate keys.
pub(crate) fn once(duplicates: &[FieldPath]) -> Result<(), String> {
    match duplicates.first() {
        Some(path) => Err(format!("{path}: the key is duplicated; remove one of them")),
        None => Ok(()),
    }
}
