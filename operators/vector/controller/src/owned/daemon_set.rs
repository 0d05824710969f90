//! `DaemonSet` of the agents.

use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::pod;
use crate::owned::runner::{Runner, object};

/// Returns the `DaemonSet` of the agents.
pub(crate) fn of(runner: &Runner<'_>) -> Value {
    let spec = Fields::new()
        .with("selector", json!({"matchLabels": runner.match_labels()}))
        .with("template", pod::template(runner, None, false));
    object("apps/v1", "DaemonSet", runner.workload_metadata())
        .with("spec", spec)
        .into()
}
