//! Workloads: facts about the workloads that may run pipelines.

use serde_json::Value;

use crate::port_allocation::labels;
use crate::port_allocation::labels::Labels;
use crate::port_allocation::status_view::name;
use crate::workload_release;
use crate::workload_release::ImageRelease;

/// Endpoint of Vector's own API in the Pods, on all of their addresses.
const API_PORT: &str = "tcp 8686";

/// Endpoint of Vector's own metrics.
const METRICS_PORT: &str = "tcp 9598";

/// Workload that may run pipelines.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFacts {
    pub(crate) name: String,
    /// Labels that a pipeline must have.
    selector: Labels,
    has_api: bool,
    has_metrics: bool,
    /// Release of the image.
    pub(crate) release: ImageRelease,
    /// True if its version may replace variables in pipelines.
    pub(crate) replaces_variables: bool,
}

impl WorkloadFacts {
    pub(crate) fn new(workload: &Value) -> Self {
        let is_on = |of: &str| {
            let paths = [format!("/spec/agent/{of}"), format!("/spec/{of}")];
            paths
                .iter()
                .any(|path| workload.pointer(path) == Some(&Value::Bool(true)))
        };
        Self {
            name: name(workload),
            selector: labels::of(workload.pointer("/spec/selector/matchLabels")),
            has_api: is_on("api/enabled"),
            has_metrics: is_on("internalMetrics"),
            release: ImageRelease::of_workload(workload),
            replaces_variables: workload_release::replaces_variables(workload),
        }
    }

    /// Returns true if a pipeline has every label of the selector. As in the kaasops operator, a missing label
    /// equals an empty value.
    pub(crate) fn runs(&self, labels: &Labels) -> bool {
        let mut selected = self.selector.iter();
        selected.all(|label| {
            let is_absent = || label.ends_with('=') && !labels::has_name(labels, label);
            labels.binary_search(label).is_ok() || is_absent()
        })
    }

    /// Returns the endpoint of the workload itself that conflicts with a claim of a port, if there is one.
    pub(crate) fn needs(&self, port: &str, is_exporter: bool) -> Option<&'static str> {
        if self.has_api && port == API_PORT {
            Some("Vector's own API")
        } else if self.has_metrics && port == METRICS_PORT && !is_exporter {
            Some("Vector's own metrics")
        } else {
            None
        }
    }
}
