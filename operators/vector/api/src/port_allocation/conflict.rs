//! Address conflicts: addresses of a pipeline that others already use.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::port_allocation::arbitration::Arbitration;
use crate::port_allocation::claim::{MAX_WORKLOADS, PortClaims, listeners};
use crate::port_allocation::labels;
use crate::port_allocation::name_collision::NameCollision;
use crate::port_allocation::status_view::role;
use crate::port_allocation::workload_facts::WorkloadFacts;
use crate::workload_release::{ImageRelease, WorkloadRelease};

/// Facts that a pipeline shares with others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SharedAddresses {
    /// Workloads of the pipeline.
    pub(crate) run_by: Vec<String>,
    /// Addresses that others use.
    pub(crate) taken: Vec<AddressConflict>,
    /// Name conflicts, if they were computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) namesakes: Vec<NameCollision>,
    /// Workloads with the releases of their images, if one of them has an image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) releases: Vec<WorkloadRelease>,
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
    /// Workload in which the conflict occurs.
    pub(crate) workload: String,
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

/// Returns what a pipeline shares with others, as input of the rules: its workloads, its addresses that others use in
/// them, and the releases of their images. Returns null if no workload runs the pipeline, and if it does not listen and no
/// workload has an image.
///
/// `others` are the claims of the pipelines with the same index keys, with or without this pipeline. `workloads` are all
/// workloads of the group to which the pipeline belongs.
#[must_use]
pub fn shared(
    pipeline: &Value,
    others: &[Arc<PortClaims>],
    workloads: &[Arc<WorkloadFacts>],
) -> Value {
    let Some(role) = role(pipeline) else {
        return Value::Null;
    };
    let listeners = listeners(pipeline);
    let workloads: BTreeMap<_, _> = workloads
        .iter()
        .map(|workload| (workload.name.as_str(), workload))
        .collect();
    let workloads: Vec<&WorkloadFacts> = workloads
        .into_values()
        .map(|workload| &**workload)
        .collect();
    let labels = labels::of(pipeline.pointer("/metadata/labels"));
    let running = workloads.iter().filter(|workload| workload.runs(&labels));
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
    let contest = Arbitration::new(&me, others, &workloads, role);
    let run_by: Vec<_> = contest
        .run_by()
        .map(|workload| workload.name.clone())
        .collect();
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
            workload: loss.workload.name.clone(),
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

/// Returns the releases of workloads, or none if no workload has an image.
fn releases<'a>(workloads: impl Iterator<Item = &'a &'a WorkloadFacts>) -> Vec<WorkloadRelease> {
    let releases = workloads.map(|workload| WorkloadRelease {
        workload: workload.name.clone(),
        release: workload.release,
        replaces_variables: workload.replaces_variables,
    });
    let releases: Vec<_> = releases.take(MAX_WORKLOADS).collect();
    let has_image = |it: &WorkloadRelease| it.release != ImageRelease::Unset;
    if releases.iter().any(has_image) {
        releases
    } else {
        Vec::new()
    }
}
