//! Reloads: which Pods have loaded the published configuration, as their logs say.
//!
//! ```text
//! published files ─► lines that Vector prints ─► logs of the Pods, in turns ─► state of each Pod ─► counts, reasons, evictions
//! ```
//!
//! The logs are read in the background, a bounded number at a time, until all Pods have loaded the configuration.

mod eviction;
mod log;
mod metrics;
mod observed_reloads;
mod observer;
mod pod_loads;
mod texts;

use serde_json::{Value, json};

pub use crate::run::follow::reload::metrics::{WORKLOAD_PODS, WORKLOAD_PODS_HELP, WorkloadPods};
pub(crate) use crate::run::follow::reload::observed_reloads::{
    ObservedReloads, ReloadReport, is_observed,
};

/// Returns the permissions for the logs and for evictions.
pub(crate) fn rbac_rules() -> [Value; 2] {
    [
        json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}),
        json!({"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}),
    ]
}
