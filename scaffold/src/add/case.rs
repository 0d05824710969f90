//! `lockstep add case`: an object and the errors that it must get.

use serde_json::Value;

use crate::added::Added;
use crate::case_file::{CaseFile, ExpectedError, path, valid_object};
use crate::changes::Changes;
use crate::error::Error;
use crate::names::{check_part, module_of};
use crate::object_path::{segments, set};
use crate::project::Project;

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
    /// Change of the smallest valid object: the path of a field and its value in YAML. An item of a list has its number in the
    /// path, as in `spec.items.0.name`; the number after the last adds an item. It may be repeated.
    #[arg(long, value_name = "PATH=VALUE", value_parser = change)]
    set: Vec<(String, Value)>,
}

/// Parses a change of an object.
fn change(text: &str) -> Result<(String, Value), String> {
    let (path, value) = text.split_once('=').ok_or("write PATH=VALUE")?;
    let value = serde_saphyr::from_str(value).map_err(|error| error.to_string())?;
    Ok((path.to_owned(), value))
}

pub(crate) fn add(args: &CaseArgs, project: &Project) -> Result<Added, Error> {
    check_part(&args.name)?;
    let module = module_of(&args.kind)?;
    let mut object = valid_object(project, &args.kind)?;
    for (path, value) in &args.set {
        let changed = segments(path).and_then(|path| set(&mut object, &path, value.clone()));
        changed.map_err(|wrong| Error::Set {
            path: path.clone(),
            segment: wrong.segment,
            problem: wrong.problem,
        })?;
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
    let mut changes = Changes::default();
    changes.create(path, file.text());
    let files = changes.write(&project.rustfmt())?;
    let notes = Vec::new();
    Ok(Added { files, notes })
}

/// Returns the name of a case as a sentence.
fn comment(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::{AddArgs, add};

    const VALID: &str = "# A.\nobject:\n  kind: Lamp\n  spec:\n    text: Hello\n    list:\n      - x: 1\n        y: 2\n";

    fn add_case(folder: &Path, name: &str, sets: &[&str]) -> Result<Value, String> {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args = ["add", "case", name, "--kind", "Lamp"];
        let args = AddArgs::parse_from(args.into_iter().chain(sets));
        let added = add(&args, folder).map_err(|error| error.to_string())?;
        let text = fs::read_to_string(&added.files[0]).expect("a file");
        let case: Value = serde_saphyr::from_str(&text).expect("YAML");
        Ok(case["object"]["spec"].clone())
    }

    #[test]
    fn fields_of_the_smallest_valid_object_are_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let cases = folder.path().join("tests/cases");
        fs::create_dir_all(&cases).expect("a folder");
        fs::write(cases.join("lamp-a.yaml"), VALID).expect("a file");
        let sets = [
            "spec.text=Good day",
            "spec.size.max=3",
            "spec.tags=[a, b]",
            "spec.list.0.x=5",
            "spec.list.1.x=6",
        ];
        let spec = add_case(folder.path(), "b", &sets).expect("a case");
        let list = json!([{"x": 5, "y": 2}, {"x": 6}]);
        let expected =
            json!({"text": "Good day", "size": {"max": 3}, "tags": ["a", "b"], "list": list});
        assert_eq!(spec, expected);

        let error = add_case(folder.path(), "c", &["spec.text=a", "spec.list.5.x=6"]);
        let expected = "`--set spec.list.5.x`: the segment `5` is beyond the end of the list; the next item is 1";
        assert_eq!(error, Err(expected.to_owned()));
        assert!(!cases.join("lamp-c.yaml").exists());
        assert!(change("spec.text").is_err());
    }

    #[test]
    fn a_name_becomes_a_sentence() {
        assert_eq!(comment("two-lines"), "Two lines.");
    }
}
