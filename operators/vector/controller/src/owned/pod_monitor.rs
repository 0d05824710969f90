//! `PodMonitor` of the Prometheus Operator.

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::ports;

const GROUP: &str = "monitoring.coreos.com";
const VERSION: &str = "v1";
const KIND: &str = "PodMonitor";

/// Returns the API resource.
pub(crate) fn api_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, KIND))
}

/// Returns the `PodMonitor`, if Vector serves its own metrics and the cluster has this type.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Option<Value> {
    let settings = workload.settings;
    let is_wanted = settings.internal_metrics.unwrap_or_default();
    if !is_wanted || !workload.cluster.has_pod_monitors {
        return None;
    }
    let endpoint = Fields::new()
        .with("path", "/metrics")
        .with("port", ports::METRICS_NAME)
        .with_text("interval", settings.scrape_interval.as_deref())
        .with_text("scrapeTimeout", settings.scrape_timeout.as_deref());
    let spec = Fields::new()
        .with("podMetricsEndpoints", vec![Value::from(endpoint)])
        .with("selector", json!({"matchLabels": workload.match_labels()}));
    let metadata = workload.metadata(&workload.object_name());
    let monitor = object(&format!("{GROUP}/{VERSION}"), KIND, metadata);
    Some(monitor.with("spec", spec).into())
}
