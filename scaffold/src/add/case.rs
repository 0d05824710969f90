//! `lockstep add case`: an object and the errors that it must get.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::case_file::{CaseFile, ExpectedError, path, valid_object};
use crate::error::Error;
use crate::names::{check_part, module_of};
use crate::project::{Project, write_new};

#[derive(Debug, clap::Args)]
pub(crate) struct CaseArgs {
    /// Name of the case, such as `two-lines`.
    name: String,
    /// Kind of the object.
    #[arg(long)]
    kind: String,
    /// The object is valid. This is the default.
    #[arg(long, conflicts_with = "invalid")]
    valid: bool,
    /// The object violates one rule.
    #[arg(long, requires_all = ["rule", "field"])]
    invalid: bool,
    /// Id of the rule, such as `single-line` or `spec.text/minLength`.
    #[arg(long, requires = "invalid")]
    rule: Option<String>,
    /// Path of the field that the error names, such as `spec.text`.
    #[arg(long, requires = "invalid")]
    field: Option<String>,
    /// Type of the error, as the API server names it.
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "FieldValueInvalid"
    )]
    error_type: String,
    /// End of the message. Errors of the schema need none.
    #[arg(long, requires = "invalid")]
    detail: Option<String>,
    /// Change of the smallest valid object: the path of a field and its value in YAML. It may be repeated.
    #[arg(long, value_name = "PATH=VALUE", value_parser = change)]
    set: Vec<(String, Value)>,
}

/// Parses a change of an object.
fn change(text: &str) -> Result<(String, Value), String> {
    let (path, value) = text.split_once('=').ok_or("write PATH=VALUE")?;
    let value = serde_saphyr::from_str(value).map_err(|error| error.to_string())?;
    Ok((path.to_owned(), value))
}

pub(crate) fn add(args: &CaseArgs, project: &Project) -> Result<Vec<PathBuf>, Error> {
    check_part(&args.name)?;
    let module = module_of(&args.kind)?;
    let mut object = valid_object(project, &args.kind)?;
    for (path, value) in &args.set {
        set(&mut object, path, value.clone());
    }
    let error = args.rule.clone().zip(args.field.clone());
    let file = CaseFile {
        comment: comment(&args.name),
        object,
        error: error.map(|(rule, field)| ExpectedError {
            rule,
            error_type: args.error_type.clone(),
            field,
            detail: args.detail.clone(),
        }),
    };
    let path = path(project, &module, &args.name);
    write_new(&[(path.clone(), file.text())])?;
    Ok(vec![path])
}

/// Returns the name of a case as a sentence.
fn comment(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Sets a field of an object, and creates the objects that contain it.
pub(super) fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for name in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_in_objects_that_do_not_exist_yet() {
        let mut object = json!({"spec": {"text": "Hello"}});
        for text in ["spec.text=Good day", "spec.size.max=3", "spec.tags=[a, b]"] {
            let (path, value) = change(text).expect("a change");
            set(&mut object, &path, value);
        }
        let expected = json!({"text": "Good day", "size": {"max": 3}, "tags": ["a", "b"]});
        assert_eq!(object, json!({"spec": expected}));
        assert!(change("spec.text").is_err());
    }

    #[test]
    fn a_name_becomes_a_sentence() {
        assert_eq!(comment("two-lines"), "Two lines.");
    }
}
