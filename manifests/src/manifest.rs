//! Generated files.

use std::path::Path;

use lockstep_shared_validation::Validator;
use serde_json::Value;

use crate::json_schema;
use crate::marker::marker;
use crate::names::Names;
use crate::options::InstallOptions;

/// Generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// Path relative to the directory `manifests/`.
    pub name: String,
    /// Content of the file.
    pub content: String,
}

/// Returns the file with the CRD of a kind.
pub(crate) fn crd_file(ruleset: &dyn Validator, crd: &Value) -> Manifest {
    let plural = ruleset.crd()["spec"]["names"]["plural"].as_str();
    let name = format!("{}.yaml", plural.unwrap_or_default());
    manifest(&name, std::slice::from_ref(crd))
}

impl Manifest {
    /// Returns the same file with a comment that names the program that writes it, if it is YAML.
    pub(crate) fn with_header(mut self, names: &Names) -> Self {
        if Path::new(&self.name).extension() == Some("yaml".as_ref()) {
            let header = format!("# {}; do not edit.\n", marker(&names.program));
            self.content.insert_str(0, &header);
        }
        self
    }

    /// Returns the same file in a folder.
    pub(crate) fn within(self, folder: &str) -> Self {
        Self {
            name: format!("{folder}/{}", self.name),
            ..self
        }
    }
}

/// Returns the file with the JSON Schema of a kind.
fn schema(ruleset: &dyn Validator, program: &str) -> Manifest {
    let (group, version, kind) = (ruleset.group(), ruleset.version(), ruleset.kind());
    let mut schema = json_schema::json_schema(ruleset.crd(), group, version, kind);
    schema["$comment"] = format!("{}; do not edit.", marker(program)).into();
    Manifest {
        name: format!("schemas/{}_{version}.json", kind.to_lowercase()),
        content: format!("{schema:#}\n"),
    }
}

/// Returns a YAML file with these objects.
pub(crate) fn manifest(name: &str, objects: &[Value]) -> Manifest {
    let documents: Vec<_> = objects
        .iter()
        .map(|object| serde_saphyr::to_string(object).expect("JSON is valid YAML"))
        .collect();
    Manifest {
        name: name.to_owned(),
        content: documents.join("---\n"),
    }
}

/// Returns the JSON Schemas of all kinds, for editors.
pub(crate) fn schemas(install: &InstallOptions<'_>) -> impl Iterator<Item = Manifest> {
    let validators = install.validators.iter();
    validators.map(|ruleset| schema(ruleset.as_ref(), &install.names.program))
}
