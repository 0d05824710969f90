//! Statuses of a workload and of its pipelines.

pub(crate) mod pipeline_statuses;
pub(crate) mod warnings;
pub(crate) mod workload_status;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

/// Returns the time as statuses have it.
pub(crate) fn now() -> String {
    let now = json!(Time(Timestamp::now()));
    now.as_str().unwrap_or_default().to_owned()
}
