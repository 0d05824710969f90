//! Case files: an object, and the errors that it must get.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::Error;
use crate::project::{Project, read};

/// Folder of the case files.
const FOLDER: &str = "tests/cases";

/// Case.
pub(crate) struct CaseFile {
    /// Sentence that describes the object.
    pub(crate) comment: String,
    pub(crate) object: Value,
    /// Error that the object must get; none if it is valid.
    pub(crate) error: Option<ExpectedError>,
}

/// Error that a case expects.
pub(crate) struct ExpectedError {
    pub(crate) rule: String,
    pub(crate) error_type: String,
    pub(crate) field: String,
    /// End of the message. Errors of the schema need none.
    pub(crate) detail: Option<String>,
}

impl CaseFile {
    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("# {}\nobject:\n", self.comment);
        for line in yaml(&self.object).lines() {
            text += &format!("  {line}\n");
        }
        let Some(error) = &self.error else {
            return text;
        };
        text += "errors:\n";
        let fields = [
            ("- rule", Some(&error.rule)),
            ("  type", Some(&error.error_type)),
            ("  field", Some(&error.field)),
            ("  detail", error.detail.as_ref()),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                text += &format!("  {name}: {}\n", yaml(&json!(value)).trim_end());
            }
        }
        text
    }
}

/// Returns the path of the file of a case.
pub(crate) fn path(project: &Project, module: &str, name: &str) -> PathBuf {
    project.path(&format!(
        "{FOLDER}/{}-{name}.yaml",
        module.replace('_', "-")
    ))
}

/// Returns the smallest object of the valid cases of a kind.
///
/// # Errors
///
/// There is none.
pub(crate) fn valid_object(project: &Project, kind: &str) -> Result<Value, Error> {
    let objects = valid_objects(project, kind, &[])?;
    Ok(objects.into_iter().next().unwrap_or_default())
}

/// Returns the objects of the valid cases of a kind that have a value at a path, the smallest first. There is at least one.
///
/// # Errors
///
/// There is none.
pub(crate) fn valid_objects(
    project: &Project,
    kind: &str,
    path_in_object: &[String],
) -> Result<Vec<Value>, Error> {
    let folder = project.path(FOLDER);
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
        let path = entry.map_err(Error::file(&folder))?.path();
        if path.extension() != Some("yaml".as_ref()) {
            continue;
        }
        let case: Value = serde_saphyr::from_str(&read(&path)?).unwrap_or_default();
        let is_of_kind = case["object"]["kind"] == kind;
        let pointer = path_in_object.iter();
        let pointer =
            pointer.map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")));
        let has_value = case["object"].pointer(&pointer.collect::<String>());
        if is_of_kind
            && has_value.is_some_and(|value| !value.is_null())
            && ["errors", "old", "warnings"]
                .iter()
                .all(|name| case[name].is_null())
        {
            found.push(case["object"].clone());
        }
    }
    if !found.is_empty() {
        found.sort_by_key(|object| object.to_string().len());
        return Ok(found);
    }
    let with_field = if path_in_object.is_empty() {
        String::new()
    } else {
        format!(" with the field `{}`", path_in_object.join("."))
    };
    Err(Error::NoPlace {
        path: folder,
        missing: format!(
            "a file with a valid object of the kind{with_field}, without `errors`, `old` and `warnings`"
        ),
        by_hand: format!("one with an `object` of the kind {kind}{with_field}"),
    })
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_object_and_the_error() {
        let file = CaseFile {
            comment: "A text of two lines.".to_owned(),
            object: json!({"kind": "Greeting", "spec": {"text": "Hello,\n{user}!"}}),
            error: Some(ExpectedError {
                rule: "single-line".to_owned(),
                error_type: "FieldValueInvalid".to_owned(),
                field: "spec.text".to_owned(),
                detail: Some("must be one line [single-line]".to_owned()),
            }),
        };
        let text = file.text();
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        let error = json!({
            "rule": "single-line", "type": "FieldValueInvalid", "field": "spec.text",
            "detail": "must be one line [single-line]",
        });
        assert_eq!(read, json!({"object": file.object, "errors": [error]}));
        assert!(
            text.starts_with("# A text of two lines.\nobject:\n  kind: Greeting\n  spec:\n"),
            "{text}"
        );
        assert!(
            text.contains("\nerrors:\n  - rule: single-line\n    type: FieldValueInvalid\n"),
            "{text}"
        );
    }
}
