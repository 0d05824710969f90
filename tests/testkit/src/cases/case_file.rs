//! Case files: an object and the errors that it must get.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// One case file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the file, without its extension.
    #[serde(skip)]
    pub name: String,
    /// Object to validate.
    pub object: Value,
    /// Stored object, if the case is an update.
    #[serde(default)]
    pub old: Option<Value>,
    /// Errors in the order in which they are reported; empty if the object is valid.
    #[serde(default)]
    pub errors: Vec<Expected>,
    /// Rules that warn, if the case is about warnings.
    #[serde(default)]
    pub warnings: Option<Vec<String>>,
}

/// Error that a case expects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Id of the rule.
    pub rule: String,
    /// Type of the error, as apimachinery names it.
    #[serde(rename = "type")]
    pub error_type: String,
    /// Path of the field.
    pub field: String,
    /// End of the message. It is not compared for errors of the schema, which the API server words differently.
    #[serde(default)]
    pub detail: Option<String>,
}

impl Case {
    /// Returns a case without expectations.
    pub fn new(name: String, object: Value, old: Option<Value>) -> Self {
        Self {
            name,
            object,
            old,
            errors: Vec::new(),
            warnings: None,
        }
    }

    /// Reads all YAML files of a folder, in the order of their names.
    ///
    /// # Panics
    ///
    /// If the folder has no file, or a file is no case.
    pub fn read_folder(folder: &Path) -> Vec<Self> {
        let shown = folder.display();
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.expect("the folder is readable").path())
            .filter(|path| path.extension() == Some("yaml".as_ref()))
            .collect();
        assert!(!paths.is_empty(), "{shown} contains no case");
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let shown = path.display();
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let options = serde_saphyr::options! {
            // Cases are about nesting, too.
            budget: serde_saphyr::budget! { max_depth: 256 },
        };
        let mut case: Self = serde_saphyr::from_str_with_options(&text, options)
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let stem = path.file_stem().unwrap_or_default();
        case.name = stem.to_string_lossy().into_owned();
        case
    }

    /// Returns the name of the object if the case is about names, otherwise the given name. A case is about names if it expects
    /// an error of the name, or if its file begins with `name-`.
    pub fn name_or(&self, other: &str) -> String {
        let own = self.object["metadata"]["name"].as_str();
        let mut errors = self.errors.iter();
        let is_about_names =
            self.name.starts_with("name-") || errors.any(|error| error.field == "metadata.name");
        own.filter(|_| is_about_names).unwrap_or(other).to_owned()
    }

    /// Returns true if the case expects no error.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        // Some specs are huge.
        let mut write = |value: &Value| write!(f, " {:.2000}", value["spec"].to_string());
        write(&self.object)?;
        self.old.as_ref().map_or(Ok(()), write)
    }
}

impl Expected {
    /// Returns true for an error of the schema.
    pub fn is_structural(&self) -> bool {
        self.rule.contains('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_keeps_the_name_that_its_case_is_about() {
        let object = json!({"metadata": {"name": "own"}});
        let name_of = |file: &str, field: Option<&str>| {
            let mut case = Case::new(file.to_owned(), object.clone(), None);
            case.errors = field
                .map(|field| Expected {
                    rule: "rule".to_owned(),
                    error_type: "FieldValueInvalid".to_owned(),
                    field: field.to_owned(),
                    detail: None,
                })
                .into_iter()
                .collect();
            case.name_or("file")
        };
        assert_eq!(name_of("minimal", None), "file");
        assert_eq!(name_of("minimal", Some("spec.text")), "file");
        assert_eq!(name_of("minimal", Some("metadata.name")), "own");
        assert_eq!(name_of("name-longest", None), "own");
    }
}
