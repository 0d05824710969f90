//! What pipelines are told of who may run them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stored::{name, text};

/// Where Vector's own API listens in the Pods that run it, at all of their addresses.
const API_PORT: &str = "tcp 8686";

/// Who may run pipelines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Runner {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The labels that it selects by.
    selector: BTreeMap<String, String>,
    has_api: bool,
}

impl Runner {
    pub(super) fn new(runner: &Value) -> Self {
        let selector = runner.pointer("/spec/selector/matchLabels");
        let selector = selector.and_then(Value::as_object).into_iter().flatten();
        let selector =
            selector.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let is_on = |pointer| runner.pointer(pointer) == Some(&Value::Bool(true));
        Self {
            name: name(runner),
            namespace: text(&runner["metadata"]["namespace"]),
            selector: selector.collect(),
            has_api: is_on("/spec/agent/api/enabled") || is_on("/spec/api/enabled"),
        }
    }

    /// Whether a pipeline has every label that is selected by.
    pub(super) fn runs(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut selected = self.selector.iter();
        selected.all(|(name, value)| labels.get(name) == Some(value))
    }

    /// Whether it has a port for Vector's own API.
    pub(super) fn needs(&self, port: &str) -> bool {
        self.has_api && port == API_PORT
    }
}
