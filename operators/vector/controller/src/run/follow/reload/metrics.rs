//! Metric of the Pods of each workload by what is known of their configuration.

use lockstep_controller::ObjectGauge;
use prometheus_client::encoding::EncodeLabelSet;

use crate::run::follow::reload::pod_loads::{Loads, PodState};

/// Name of the metric.
pub const WORKLOAD_PODS: &str = "lockstep_vector_pods";

/// Help text of the metric.
pub const WORKLOAD_PODS_HELP: &str = "Number of Pods of a workload of Vector by what their logs say about the published configuration: loaded, waiting, refused, crash_looping, stuck, unknown";

/// Number of Pods by workload and state.
pub type WorkloadPods = ObjectGauge<WorkloadPodLabels>;

/// Labels of [`WorkloadPods`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WorkloadPodLabels {
    kind: &'static str,
    namespace: String,
    name: String,
    state: &'static str,
}

/// Test of a state.
type IsIn = fn(&PodState) -> bool;

/// States of Pods, by their names in the metric.
const STATES: [(&str, IsIn); 6] = [
    ("loaded", |state| matches!(state, PodState::Loaded)),
    ("waiting", |state| matches!(state, PodState::Waiting)),
    ("refused", |state| matches!(state, PodState::Refused(_))),
    ("crash_looping", |state| {
        matches!(state, PodState::CrashLooping(_))
    }),
    ("stuck", |state| matches!(state, PodState::Stuck(_))),
    ("unknown", |state| matches!(state, PodState::Unknown(_))),
];

/// Workload in the metric.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredWorkload {
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl MeasuredWorkload {
    fn labels(&self, state: &'static str) -> WorkloadPodLabels {
        WorkloadPodLabels {
            kind: self.kind,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            state,
        }
    }

    /// Sets the numbers of the workload with this UID.
    pub(crate) fn set(&self, uid: &str, pods: &WorkloadPods, loads: &Loads) {
        for (state, is_in) in STATES {
            let count = i64::try_from(loads.count(is_in)).unwrap_or(i64::MAX);
            pods.set(uid, self.labels(state), count);
        }
    }
}
