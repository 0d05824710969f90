//! What pipelines are told of who may run them.

use serde_json::Value;

use super::claims::Claim;
use super::labels::{self, Labels};
use super::stored::name;

/// Where Vector's own API listens in the Pods that run it, at all of their addresses.
const API_PORT: &str = "tcp 8686";

/// Where Vector's own metrics are served.
const METRICS_PORT: &str = "tcp 9598";

/// Who may run pipelines.
#[derive(Clone, Debug, PartialEq)]
pub struct Runner {
    pub(super) name: String,
    /// The labels that it selects by.
    selector: Labels,
    has_api: bool,
    has_metrics: bool,
}

impl Runner {
    pub(super) fn new(runner: &Value) -> Self {
        let is_on = |of: &str| {
            let places = [format!("/spec/agent/{of}"), format!("/spec/{of}")];
            places
                .iter()
                .any(|place| runner.pointer(place) == Some(&Value::Bool(true)))
        };
        Self {
            name: name(runner),
            selector: labels::of(runner.pointer("/spec/selector/matchLabels")),
            has_api: is_on("api/enabled"),
            has_metrics: is_on("internalMetrics"),
        }
    }

    /// Whether a pipeline has every label that is selected by. One that it has not is empty, as the operator of
    /// kaasops compares them.
    pub(super) fn runs(&self, labels: &Labels) -> bool {
        let mut selected = self.selector.iter();
        selected.all(|label| {
            let is_absent = || label.ends_with('=') && !labels::has_name(labels, label);
            labels.binary_search(label).is_ok() || is_absent()
        })
    }

    /// What of its own is where a pipeline is to listen.
    pub(super) fn needs(&self, claim: &Claim) -> Option<&'static str> {
        let port = claim.place.port.as_str();
        if self.has_api && port == API_PORT {
            Some("Vector's own API")
        } else if self.has_metrics && port == METRICS_PORT && !claim.is_exporter {
            Some("Vector's own metrics")
        } else {
            None
        }
    }
}
