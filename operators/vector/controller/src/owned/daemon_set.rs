//! `DaemonSet` of the agents.

use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::pod;

/// Returns the `DaemonSet` of the agents.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Value {
    let spec = Fields::new()
        .with("selector", json!({"matchLabels": workload.match_labels()}))
        .with_some("updateStrategy", workload.settings.update_strategy.clone())
        .with("template", pod::template(workload, None, false));
    object("apps/v1", "DaemonSet", workload.workload_metadata())
        .with("spec", spec)
        .into()
}
