//! State of a Pod that checks a configuration.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use lockstep_vector_validator::Outcome;

use crate::owned::CHECK_CONTAINER;

/// Reasons of a container that waits for something that only a change of the workload or of the cluster provides.
const CANNOT_START: [&str; 2] = ["CreateContainerConfigError", "InvalidImageName"];

/// State of a Pod that checks a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// The result is not known yet. The check ends after this time.
    Running(Duration),
    /// Vector accepts the configuration.
    Passed,
    /// Vector rejects the configuration. The end of its log, if it is known.
    Failed(Option<String>),
    /// The Pod comes to no result, for this reason.
    Unfinished(String),
}

impl PodState {
    /// Returns the state of a Pod at a time.
    pub(crate) fn new(pod: &Pod, now: Timestamp, timeout: Duration) -> Self {
        let none = PodStatus::default();
        let status = pod.status.as_ref().unwrap_or(&none);
        let containers = status.container_statuses.iter().flatten();
        let statuses = containers.chain(status.init_container_statuses.iter().flatten());
        let statuses: Vec<_> = statuses.collect();
        let vector = statuses.iter().find(|it| it.name == CHECK_CONTAINER);
        let ended = vector.and_then(|it| it.state.as_ref()?.terminated.as_ref());
        // A Pod that was evicted, or whose node is gone, says so. Its containers were ended from outside.
        let was_ended = status.phase.as_deref() == Some("Failed") && status.reason.is_some();
        match ended.filter(|_| !was_ended) {
            Some(ended) => return result(ended),
            None if status.phase.as_deref() == Some("Succeeded") => return Self::Passed,
            None => {}
        }
        if status.phase.as_deref() == Some("Failed") {
            return Self::Unfinished(format!("its Pod has failed{}", why(status, &statuses)));
        }
        let mut waiting = statuses.iter().filter_map(|it| waiting(it));
        if waiting.any(|(reason, _)| CANNOT_START.contains(&reason)) {
            return Self::Unfinished(format!("its Pod cannot start{}", why(status, &statuses)));
        }
        let created = pod.metadata.creation_timestamp.as_ref();
        let age = created.map_or(SignedDuration::ZERO, |created| {
            now.duration_since(created.0)
        });
        let age = age.unsigned_abs() * u32::from(age.is_positive());
        match timeout.checked_sub(age).filter(|left| !left.is_zero()) {
            Some(left) => Self::Running(left),
            None => Self::Unfinished(format!(
                "its Pod has not ended within {} s{}",
                timeout.as_secs(),
                why(status, &statuses)
            )),
        }
    }
}

fn result(ended: &ContainerStateTerminated) -> PodState {
    let code = ended.exit_code;
    match Outcome::of_exit_code(code) {
        Outcome::Passed => PodState::Passed,
        Outcome::Unfinished => {
            let reason = ended.reason.as_deref().unwrap_or("Error");
            PodState::Unfinished(format!(
                "its container ended with exit code {code} ({reason})"
            ))
        }
        Outcome::Failed => {
            PodState::Failed(ended.message.clone().filter(|it| !it.trim().is_empty()))
        }
    }
}

/// Returns what a Pod says about why it does not run, in brackets.
fn why(status: &PodStatus, containers: &[&ContainerStatus]) -> String {
    let conditions = status.conditions.iter().flatten();
    let mut unscheduled =
        conditions.filter(|it| it.type_ == "PodScheduled" && it.status == "False");
    let unscheduled = unscheduled.next().map(|it| (&it.reason, &it.message));
    let unscheduled = unscheduled.map(|(reason, message)| (reason.as_deref(), message.as_deref()));
    let waiting = containers.iter().find_map(|it| waiting(it));
    let waiting = waiting.map(|(reason, message)| (Some(reason), message));
    let whole = (status.reason.as_deref(), status.message.as_deref());
    let whole = Some(whole).filter(|(reason, message)| reason.or(*message).is_some());
    let Some((reason, message)) = whole.or(waiting).or(unscheduled) else {
        return String::new();
    };
    let parts: Vec<_> = reason.into_iter().chain(message).collect();
    format!(" ({})", parts.join(": "))
}

fn waiting(container: &ContainerStatus) -> Option<(&str, Option<&str>)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    Some((waiting.reason.as_deref()?, waiting.message.as_deref()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(5);

    /// Returns the state of a Pod this long after its creation.
    fn state(seconds: i64, status: &Value) -> PodState {
        let pod = json!({
            "metadata": {"creationTimestamp": "2026-01-05T10:00:00Z"}, "status": status,
        });
        let pod: Pod = serde_json::from_value(pod).expect("a Pod");
        let created: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a time");
        PodState::new(&pod, created + SignedDuration::from_secs(seconds), TIMEOUT)
    }

    fn container(state: &Value) -> Value {
        json!({
            "phase": "Pending",
            "containerStatuses": [{
                "name": "config-check", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state,
            }],
        })
    }

    fn ended(code: i32, message: Option<&str>) -> Value {
        let ended = json!({"exitCode": code, "reason": "Error", "message": message});
        container(&json!({"terminated": ended}))
    }

    #[test]
    fn the_exit_code_of_vector_is_the_result() {
        assert_eq!(state(400, &ended(0, None)), PodState::Passed);
        assert_eq!(state(1, &json!({"phase": "Succeeded"})), PodState::Passed);
        let log = Some("x error".to_owned());
        assert_eq!(state(1, &ended(78, Some("x error"))), PodState::Failed(log));
        assert_eq!(state(1, &ended(1, Some(" "))), PodState::Failed(None));
    }

    #[test]
    fn a_pod_that_comes_to_no_result_never_passes() {
        let waiting =
            |reason: &str| container(&json!({"waiting": {"reason": reason, "message": "m"}}));
        let unschedulable = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"},
        ]});
        let mut evicted = ended(0, None);
        evicted["phase"] = json!("Failed");
        evicted["reason"] = json!("Evicted");
        for (seconds, status, expected) in [
            (
                1,
                ended(137, None),
                "its container ended with exit code 137 (Error)",
            ),
            (
                1,
                ended(127, None),
                "its container ended with exit code 127 (Error)",
            ),
            (1, evicted, "its Pod has failed (Evicted)"),
            (1, json!({"phase": "Failed"}), "its Pod has failed"),
            (
                1,
                waiting("InvalidImageName"),
                "its Pod cannot start (InvalidImageName: m)",
            ),
            (
                300,
                waiting("ErrImagePull"),
                "its Pod has not ended within 300 s (ErrImagePull: m)",
            ),
            (
                300,
                unschedulable,
                "its Pod has not ended within 300 s (Unschedulable: 0/1 nodes)",
            ),
            (301, json!(null), "its Pod has not ended within 300 s"),
        ] {
            let found = state(seconds, &status);
            assert_eq!(found, PodState::Unfinished(expected.to_owned()), "{status}");
        }
    }

    #[test]
    fn a_pod_runs_until_the_time_out() {
        let left = |seconds| PodState::Running(Duration::from_secs(seconds));
        let waiting = container(&json!({"waiting": {"reason": "ErrImagePull"}}));
        assert_eq!(state(299, &waiting), left(1));
        assert_eq!(state(0, &json!(null)), left(300));
        // The clock of the API server is ahead.
        assert_eq!(state(-9, &json!(null)), left(300));
    }
}
