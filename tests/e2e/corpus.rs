//! The test cases in `tests/cases`.

use std::fmt;
use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::env::root;

/// One file of the corpus.
#[derive(Deserialize)]
pub struct Case {
    #[serde(skip)]
    pub name: String,
    pub object: Value,
    #[serde(default)]
    pub old: Option<Value>,
    #[serde(default)]
    pub errors: Vec<Expected>,
    /// Rules that warn, if the case is about warnings.
    #[serde(default)]
    pub warnings: Option<Vec<String>>,
}

impl Case {
    pub fn new(name: String, object: Value, old: Option<Value>) -> Self {
        Self {
            name,
            object,
            old,
            errors: Vec::new(),
            warnings: None,
        }
    }

    /// Name of the object if the case is about names, otherwise the given name.
    pub fn name_or(&self, other: &str) -> String {
        let own = self.object["metadata"]["name"].as_str();
        let own = own.filter(|_| self.name.starts_with("name-"));
        own.unwrap_or(other).to_owned()
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

#[derive(Deserialize)]
pub struct Expected {
    pub rule: String,
    #[serde(rename = "type")]
    pub error_type: String,
    pub field: String,
    /// Message of the error; not compared in the structural layer, where the API server has its own wording.
    #[serde(default)]
    pub detail: Option<String>,
}

impl Expected {
    pub fn is_structural(&self) -> bool {
        self.rule.contains('/')
    }
}

/// Cases of `CloudDatabase`.
pub fn corpus() -> Vec<Case> {
    let cases = corpus_of("cloud-database");
    assert!(cases.len() > 150, "the corpus has lost its cases");
    cases
}

/// Cases of one kind.
pub fn corpus_of(kind: &str) -> Vec<Case> {
    let folder = root().join("tests/cases").join(kind);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).expect("a case");
        let mut case: Case = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        case.name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        case
    };
    paths.iter().map(read).collect()
}
