//! Configuration of a flow, with what a process without catalogues needs to know of them.

use std::collections::BTreeMap;

use lockstep_vector_api::{Catalogue, ComponentKind, VectorVersion, components, output_names};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Valid configuration, and facts about its components.
#[derive(Serialize, Deserialize)]
pub(crate) struct FlowConfig {
    pub(crate) config: Map<String, Value>,
    /// Names of the outputs of each source and transform.
    pub(crate) outputs: BTreeMap<String, Vec<String>>,
    /// Version whose language the programs have.
    pub(crate) version: VectorVersion,
}

impl FlowConfig {
    pub(crate) fn new(catalogue: &Catalogue, config: &Value) -> Self {
        let config = config.as_object().cloned().unwrap_or_default();
        let with_outputs =
            components(&config).filter(|component| component.family != ComponentKind::Sink);
        let outputs = with_outputs.map(|component| {
            let names = output_names(catalogue, &component);
            (component.id.to_owned(), names)
        });
        Self {
            outputs: outputs.collect(),
            config,
            version: catalogue.number(),
        }
    }
}
