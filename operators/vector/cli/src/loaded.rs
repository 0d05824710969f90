//! Valid configurations of files: those of Vector, and those in manifests of pipelines.

use std::path::PathBuf;
use std::sync::Arc;

use lockstep_vector_api::{Catalogue, Check, Diagnostic};
use serde_json::{Value, json};

use crate::catalogue_files::VersionArgs;
use crate::common_args::CommonArgs;
use crate::configuration::paths::GivenPaths;
use crate::configuration::{self, Reading};
use crate::problems::problems;

/// Exit code of Vector for a configuration that it cannot load.
pub(crate) const EX_CONFIG: u8 = 78;

/// Kinds of manifests whose `spec` is a configuration.
const PIPELINES: [&str; 2] = ["VectorPipeline", "ClusterVectorPipeline"];

/// Part of a configuration that must be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// Transforms alone: Vector runs tests without sources and sinks.
    Transforms,
}

impl Scope {
    fn has(self, problem: &Diagnostic) -> bool {
        self == Self::Everything
            || problem.check != Check::Topology
                && problem.error.path.as_str().starts_with("transforms[")
    }
}

/// Configurations that can be loaded, and the catalogue of their version.
pub(crate) struct Loaded {
    pub(crate) catalogue: Arc<Catalogue>,
    /// Configuration of all files together, or of each manifest.
    pub(crate) configurations: Vec<NamedConfiguration>,
}

/// Configuration of a pipeline or of files.
pub(crate) struct NamedConfiguration {
    pub(crate) name: String,
    pub(crate) config: Value,
}

impl Loaded {
    /// Reads configurations.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or Vector would not load a configuration.
    pub(crate) fn read(
        files: &[PathBuf],
        version: &VersionArgs,
        common: &CommonArgs,
        scope: Scope,
    ) -> Result<Self, String> {
        let catalogue = version.chosen().map_err(|error| format!("{error:#}"))?;
        let reading = Reading {
            interpolates: common.dangerously_allow_env_var_interpolation
                || catalogue.number().always_interpolates(),
            version: catalogue.number(),
        };
        let read = |files: Vec<PathBuf>| {
            let given = GivenPaths {
                files,
                ..GivenPaths::default()
            };
            let paths = given.existing()?;
            configuration::read(&paths, reading).map_err(|problems| problems.join("\n"))
        };
        let mut of_pipelines = Vec::new();
        let mut of_vector = Vec::new();
        for file in files {
            let config = read(vec![file.clone()])?;
            if PIPELINES.iter().any(|kind| config["kind"] == *kind) {
                of_pipelines.push(NamedConfiguration {
                    name: name(&config),
                    config: of_pipeline(&config),
                });
            } else {
                of_vector.push(file.clone());
            }
        }
        let mut configurations = of_pipelines;
        if !of_vector.is_empty() {
            let names = of_vector.iter().map(|file| file.display().to_string());
            configurations.push(NamedConfiguration {
                name: names.collect::<Vec<_>>().join(", "),
                config: read(of_vector)?,
            });
        }
        for NamedConfiguration { name, config } in &configurations {
            let found = problems(&catalogue, config, false).into_iter();
            let found = found.filter(|problem| !problem.check.is_warning() && scope.has(problem));
            let errors: Vec<_> = found.map(|problem| problem.error.to_string()).collect();
            if !errors.is_empty() {
                return Err(format!(
                    "the configuration of {name} is invalid:\n  {}",
                    errors.join("\n  ")
                ));
            }
        }
        Ok(Self {
            catalogue,
            configurations,
        })
    }
}

/// Returns the name of a pipeline, with its namespace.
fn name(manifest: &Value) -> String {
    let metadata = &manifest["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// Returns the configuration in the manifest of a pipeline.
fn of_pipeline(manifest: &Value) -> Value {
    let spec = &manifest["spec"];
    let blocks = ["sources", "transforms", "sinks", "tests"];
    let blocks = blocks
        .into_iter()
        .filter(|block| !spec[block].is_null())
        .map(|block| (block.to_owned(), spec[block].clone()));
    let mut config: Value = blocks.collect::<serde_json::Map<_, _>>().into();
    let sources = config["sources"].as_object_mut().into_iter().flatten();
    for (_, source) in sources.filter(|(_, source)| source["type"] == "kubernetes_events") {
        *source = json!({"type": "vector", "address": "0.0.0.0:42000"});
    }
    config
}
