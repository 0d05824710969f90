//! Files → one configuration, as in Vector.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use lockstep_sdk::{describe_read_error, describe_yaml_error};
use lockstep_shared_validation::{FieldPath, ParsedJson};
use lockstep_vector_api::ComponentKind;
use serde_json::{Map, Value};

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Yaml,
    Json,
    Toml,
}

/// File with a configuration or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl File {
    /// Creates a file whose format is derived from its extension. Without a known extension the format is TOML, as
    /// in Vector.
    pub(crate) fn new(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let format = match extension {
            Some("yaml" | "yml") => Format::Yaml,
            Some("json") => Format::Json,
            None if path.as_os_str() == "-" => Format::Yaml,
            _ => Format::Toml,
        };
        Self {
            path: path.to_owned(),
            format,
        }
    }

    fn read(&self) -> Result<Map<String, Value>, String> {
        let mut text = String::new();
        let read = if self.path.as_os_str() == "-" {
            std::io::stdin().lock().read_to_string(&mut text).map(drop)
        } else {
            fs::read_to_string(&self.path).map(|read| text = read)
        };
        read.map_err(|error| format!("the file {}", describe_read_error(&error)))?;
        parse(&text, self.format)
    }
}

/// Parses a text. A duplicate key is an error in every format.
fn parse(text: &str, format: Format) -> Result<Map<String, Value>, String> {
    let value = match format {
        Format::Toml => toml::from_str(text).map_err(|error| describe_toml_error(text, &error))?,
        Format::Yaml => {
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_saphyr::from_str_with_options(text, options)
                .map_err(|error| describe_yaml_error(text, &error))?
        }
        Format::Json => {
            let read = ParsedJson::parse(text).map_err(|error| describe_json_error(&error))?;
            once(&read.duplicate_keys)?;
            read.value
        }
    };
    match value {
        Value::Object(fields) => Ok(fields),
        // An empty file.
        Value::Null => Ok(Map::new()),
        _ => Err(
            "the configuration must be a mapping with `sources`, `transforms` and `sinks`"
                .to_owned(),
        ),
    }
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
    format!(
        "line {}, column {}: the JSON cannot be read: {message}; correct the syntax",
        error.line(),
        error.column()
    )
}

/// Rejects duplicate keys.
pub(crate) fn once(duplicates: &[FieldPath]) -> Result<(), String> {
    match duplicates.first() {
        Some(path) => Err(format!("{path}: the key is duplicated; remove one of them")),
        None => Ok(()),
    }
}

/// Reads files that form one configuration together.
pub(crate) fn read(files: &[File]) -> Result<Value, Vec<String>> {
    let mut whole = Map::new();
    let mut problems = Vec::new();
    for file in files {
        let name = file.path.display();
        match file.read() {
            Err(problem) => problems.push(format!("{name}: {problem}")),
            Ok(part) => {
                let found = add(&mut whole, part);
                problems.extend(
                    found
                        .into_iter()
                        .map(|problem| format!("{name}: {problem}")),
                );
            }
        }
    }
    if problems.is_empty() {
        Ok(whole.into())
    } else {
        Err(problems)
    }
}

/// Adds the content of another file: components with new names, and options that are not set yet or have the same
/// value. Returns the conflicts.
fn add(whole: &mut Map<String, Value>, part: Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, value) in part {
        let is_block = ComponentKind::ALL
            .iter()
            .any(|family| family.block() == name);
        match (whole.get_mut(&name), value) {
            (None, value) => drop(whole.insert(name, value)),
            (Some(Value::Object(block)), Value::Object(more)) if is_block => {
                for (id, component) in more {
                    if block.contains_key(&id) {
                        problems.push(format!(
                            "{name}[{id}]: the name is already used in another file; rename one of the components"
                        ));
                    } else {
                        block.insert(id, component);
                    }
                }
            }
            (Some(before), value) if *before == value => {}
            (Some(_), _) => problems.push(format!(
                "{name}: another file sets a different value; set it in one of them"
            )),
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_formats_yield_the_same_configuration() {
        let expected = json!({"sources": {"in": {"type": "stdin", "max_length": 10}}});
        for (text, format) in [
            (
                "sources:\n  in:\n    type: stdin\n    max_length: 10\n",
                Format::Yaml,
            ),
            (
                r#"{"sources": {"in": {"type": "stdin", "max_length": 10}}}"#,
                Format::Json,
            ),
            (
                "[sources.in]\ntype = \"stdin\"\nmax_length = 10\n",
                Format::Toml,
            ),
        ] {
            let read = parse(text, format).map(Value::Object);
            assert_eq!(read, Ok(expected.clone()), "{format:?}");
        }
    }

    #[test]
    fn duplicate_keys_are_rejected() {
        for (text, format) in [
            ("a: 1\na: 2\n", Format::Yaml),
            (r#"{"a": 1, "a": 2}"#, Format::Json),
            ("a = 1\na = 2\n", Format::Toml),
        ] {
            assert!(parse(text, format).is_err(), "{format:?}");
        }
    }

    #[test]
    fn an_error_names_its_location_the_problem_and_what_to_do() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = |name: &str, content: Option<&[u8]>| {
            let path = directory.path().join(name);
            if let Some(content) = content {
                fs::write(&path, content).expect("a file");
            }
            let errors = read(&[File::new(&path)]).expect_err("the file is invalid");
            let prefix = format!("{}: ", path.display());
            errors[0]
                .strip_prefix(&prefix)
                .expect("the path")
                .to_owned()
        };
        fs::create_dir(directory.path().join("folder.toml")).expect("a folder");
        assert_eq!(
            error("none.toml", None),
            "the file cannot be read: it does not exist; check its path"
        );
        assert_eq!(
            error("folder.toml", None),
            "the file cannot be read: it is a folder; name a file in it"
        );
        assert_eq!(
            error("a.toml", Some(b"a = \"\xff\"")),
            "the file cannot be read: it is not UTF-8 text; save it as UTF-8"
        );
        assert_eq!(
            error("a.toml", Some(b"[sources]\nin = 1\nin = 2\n")),
            "line 3, column 1: the key is duplicated; remove one of them"
        );
        for (name, content, expected) in [
            (
                "a.toml",
                "# \u{e9}\n[sources.in\n",
                "line 2, column 12: the TOML cannot be read: ",
            ),
            (
                "a.toml",
                "a = nine\n",
                "line 1, column 5: the TOML cannot be read: ",
            ),
            (
                "a.json",
                "{\"a\": }",
                "line 1, column 7: the JSON cannot be read: ",
            ),
            (
                "a.json",
                "{\"a\": 1, \"a\": 2}",
                "a: the key is duplicated; remove one of them",
            ),
            ("a.yaml", "a: [", "line 1, column "),
            (
                "a.yaml",
                "- a",
                "the configuration must be a mapping with `sources`",
            ),
        ] {
            let found = error(name, Some(content.as_bytes()));
            assert!(found.starts_with(expected), "{found}");
            assert!(!found.contains('\n'), "no excerpt of the parser: {found}");
        }
        for name in ["empty.toml", "empty.yaml"] {
            assert_eq!(parse("", File::new(Path::new(name)).format), Ok(Map::new()));
        }
    }

    #[test]
    fn files_are_merged_and_conflicts_are_reported() {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let mut whole = object(json!({"sources": {"a": {}}, "data_dir": "/a"}));
        let more = object(json!({"sources": {"b": {}}, "data_dir": "/a"}));
        assert_eq!(add(&mut whole, more), Vec::<String>::new());
        assert_eq!(
            Value::from(whole.clone()),
            json!({"sources": {"a": {}, "b": {}}, "data_dir": "/a"})
        );
        let other = object(json!({"sources": {"b": {}}, "data_dir": "/b"}));
        assert_eq!(add(&mut whole, other).len(), 2);
    }
}
