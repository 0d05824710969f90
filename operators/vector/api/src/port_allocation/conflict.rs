//! Address conflicts: addresses of a pipeline that others already use.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::port_allocation::arbitration::Arbitration;
use crate::port_allocation::claim::{MAX_RUNNERS, PortClaims, listeners};
use crate::port_allocation::labels;
use crate::port_allocation::name_collision::NameCollision;
use crate::port_allocation::runner::Runner;
use crate::port_allocation::status_view::role;
use crate::runner_release::{ImageRelease, RunnerRelease};

/// Facts that a pipeline shares with others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SharedAddresses {
    /// Runners of the pipeline.
    pub(crate) run_by: Vec<String>,
    /// Addresses that others use.
    pub(crate) taken: Vec<AddressConflict>,
    /// Name conflicts, if they were computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) namesakes: Vec<NameCollision>,
    /// Runners with the releases of their images, if one of them has an image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) releases: Vec<RunnerRelease>,
}

/// Address of a pipeline that is not available, as input of the rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AddressConflict {
    /// Field that contains the address.
    pub(crate) at: String,
    /// Address as in the configuration.
    pub(crate) endpoint: String,
    /// Address with its protocol.
    pub(crate) address: String,
    /// Description of the holder.
    pub(crate) by: String,
    /// Runner in which the conflict occurs.
    pub(crate) runner: String,
    /// If true, the pipeline would serve its metrics in place of Vector's own, which the policy can permit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) replaces_metrics: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Returns what a pipeline shares with others, as input of the rules: its runners, its addresses that others use in
/// them, and the releases of their images. Returns null if no runner runs the pipeline, and if it does not listen and no
/// runner has an image.
///
/// `others` are the claims of the pipelines with the same index keys, with or without this pipeline. `runners` are all
/// runners of the group to which the pipeline belongs.
#[must_use]
pub fn shared(pipeline: &Value, others: &[Arc<PortClaims>], runners: &[Arc<Runner>]) -> Value {
    let Some(role) = role(pipeline) else {
        return Value::Null;
    };
    let listeners = listeners(pipeline);
    let runners: BTreeMap<_, _> = runners.iter().map(|it| (it.name.as_str(), it)).collect();
    let runners: Vec<&Runner> = runners.into_values().map(|it| &**it).collect();
    let labels = labels::of(pipeline.pointer("/metadata/labels"));
    let running = runners.iter().filter(|runner| runner.runs(&labels));
    let releases = releases(running);
    if listeners.is_empty() {
        if releases.is_empty() {
            return Value::Null;
        }
        return json!(SharedAddresses {
            releases,
            ..SharedAddresses::default()
        });
    }
    let me = PortClaims::requested(pipeline, role, &listeners);
    let contest = Arbitration::new(&me, others, &runners, role);
    let run_by: Vec<_> = contest.run_by().map(|runner| runner.name.clone()).collect();
    if run_by.is_empty() {
        return Value::Null;
    }
    let taken = contest.conflicts().into_iter().map(|(at, loss)| {
        let listener = &listeners[at];
        AddressConflict {
            at: listener.path().as_str().to_owned(),
            address: listener.address.to_string(),
            endpoint: listener.address.endpoint.clone(),
            by: loss.by,
            runner: loss.runner.name.clone(),
            replaces_metrics: loss.replaces_metrics,
        }
    });
    let taken = taken.collect();
    json!(SharedAddresses {
        run_by,
        taken,
        namesakes: Vec::new(),
        releases,
    })
}

/// Returns the releases of runners, or none if no runner has an image.
fn releases<'a>(runners: impl Iterator<Item = &'a &'a Runner>) -> Vec<RunnerRelease> {
    let releases = runners.map(|runner| RunnerRelease {
        runner: runner.name.clone(),
        release: runner.release,
        replaces_variables: runner.replaces_variables,
    });
    let releases: Vec<_> = releases.take(MAX_RUNNERS).collect();
    let has_image = |it: &RunnerRelease| it.release != ImageRelease::Unset;
    if releases.iter().any(has_image) {
        releases
    } else {
        Vec::new()
    }
}
