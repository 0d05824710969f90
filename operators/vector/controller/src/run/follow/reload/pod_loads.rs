//! States of the Pods of a workload, and what follows from them. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tokio::time::Instant;

use crate::run::follow::reload::log::{LogReading, Reload, file_of};

/// Time within which a Pod gets a publication, and within which a reload waits for its sinks, unless another one is set.
pub(crate) const GRACE: Duration = Duration::from_mins(5);

/// Time that Vector runs before it no longer counts as ending again and again.
const STEADY: Duration = Duration::from_mins(1);

/// Time after a publication within which the kubelet may start a container with files from before it.
const UPDATED: Duration = Duration::from_mins(3);

/// State of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PodState {
    /// It starts, or loads the configuration.
    #[default]
    Waiting,
    /// It has loaded the configuration.
    Loaded,
    /// Its last reload was refused: what its log says.
    Refused(String),
    /// Vector ends again and again: how. It stays over the starts between, so that a status does not change with each.
    CrashLooping(String),
    /// Its reload does not end. With the components about which it warns.
    Stuck(Vec<String>),
    /// Its log tells nothing, for this reason.
    Unknown(String),
}

/// Pod that runs Vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodLoad {
    pub(crate) name: String,
    /// Number of restarts of Vector: after one, the state is not known any more.
    pub(crate) restarts: i32,
    /// If true, Vector runs, so that it has a log.
    pub(crate) is_running: bool,
    /// If true, the Pod is ready.
    pub(crate) is_ready: bool,
    /// Time at which the Pod was created.
    pub(crate) created: Option<Timestamp>,
    pub(crate) state: PodState,
    /// Number of times that its log was read for this configuration.
    pub(crate) reads: u32,
    /// Last line about each file. It is known longer than the log has it, and for the next configuration.
    pub(crate) runs: BTreeMap<String, String>,
    /// Reload that has begun and not ended: its time, and the components with warnings.
    pub(crate) begun: Option<(Timestamp, Vec<String>)>,
}

/// Pods of a workload by UID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    pub(crate) pods: BTreeMap<String, PodLoad>,
    /// If true, Pods are being deleted.
    pub(crate) has_leaving: bool,
    /// Time of the last list of the Pods. None: it is not known yet which there are.
    pub(crate) listed: Option<Instant>,
}

/// Configuration that Pods should load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    /// Lines that Vector prints once it runs the configuration.
    pub(crate) lines: &'a [String],
    /// Time of the publication.
    pub(crate) published: Timestamp,
    /// Time that a reload may take.
    pub(crate) timeout: Duration,
    /// If true, Pods should have it by now.
    pub(crate) is_late: bool,
}

/// Describes a container that ends again and again.
fn crash_loop(vector: &ContainerStatus) -> Option<String> {
    let waiting = vector.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    if reason != "CrashLoopBackOff" {
        return None;
    }
    let last = vector.last_state.as_ref();
    let last = last.and_then(|state| state.terminated.as_ref());
    let end = last.map(|end| {
        let reason = end.reason.as_deref().unwrap_or("Error");
        format!(", the last time with {reason}, exit code {}", end.exit_code)
    });
    Some(format!(
        "{reason}{}; see its log with --previous",
        end.unwrap_or_default()
    ))
}

impl Loads {
    /// Takes over the Pods that exist now. `container` runs Vector. One that has started a while after the publication has
    /// read the published files at its start.
    pub(crate) fn update(&mut self, pods: &[Pod], container: &str, published: Timestamp) {
        let mut before = std::mem::take(&mut self.pods);
        let is_leaving = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
        self.has_leaving = pods.iter().any(|pod| is_leaving(&pod));
        for pod in pods.iter().filter(|pod| !is_leaving(pod)) {
            let statuses = pod
                .status
                .iter()
                .flat_map(|status| status.container_statuses.iter().flatten());
            let vector = statuses.clone().find(|status| status.name == container);
            let restarts = vector.map_or(0, |status| status.restart_count);
            let running = vector.and_then(|status| status.state.as_ref()?.running.as_ref());
            let started = running.and_then(|running| running.started_at.as_ref());
            let is_later = started.is_some_and(|at| at.0 > published + UPDATED);
            let is_steady = started.is_some_and(|at| at.0 + STEADY < Timestamp::now());
            let is_ready = vector.is_some_and(|status| status.ready);
            let uid = pod.uid().unwrap_or_default();
            let mut known = before.remove(&uid);
            let crashes = known
                .as_mut()
                .filter(|known| matches!(known.state, PodState::CrashLooping(_)))
                .map(|known| std::mem::take(&mut known.state));
            let crashes = crashes.filter(|_| !is_steady);
            let known = known.filter(|known| known.restarts == restarts);
            let mut load = PodLoad {
                name: pod.name_any(),
                restarts,
                is_running: running.is_some(),
                is_ready,
                created: pod.creation_timestamp().map(|time| time.0),
                ..known.unwrap_or_default()
            };
            if is_later && is_ready {
                load.state = PodState::Loaded;
            }
            let now = || vector.and_then(crash_loop).map(PodState::CrashLooping);
            if let Some(crashes) = crashes.or_else(now) {
                load.state = crashes;
            }
            self.pods.insert(uid, load);
        }
    }

    /// Notes that the Pods that run now have loaded the configuration: a controller before this one has seen it.
    pub(crate) fn assume_loaded(&mut self) {
        for load in self.pods.values_mut().filter(|load| load.is_running) {
            load.state = PodState::Loaded;
        }
    }

    /// Returns the Pods whose logs are to be read next, at most `most`: those that were read least often.
    pub(crate) fn to_read(&self, most: usize) -> Vec<(String, String)> {
        let is_open = |load: &PodLoad| load.is_running && load.state != PodState::Loaded;
        let mut open: Vec<_> = self.pods.iter().filter(|(_, load)| is_open(load)).collect();
        open.sort_by_key(|(_, load)| load.reads);
        let open = open.into_iter().take(most);
        open.map(|(uid, load)| (uid.clone(), load.name.clone()))
            .collect()
    }

    /// Returns what is known of the Pods when another configuration is published: what they run, and whether a reload has begun.
    pub(crate) fn for_next_configuration(mut self) -> Self {
        for load in self.pods.values_mut() {
            (load.state, load.reads) = (PodState::Waiting, 0);
        }
        self
    }

    /// Returns true if there is nothing new to report in comparison with the other ones.
    pub(crate) fn tells_the_same(&self, other: &Self) -> bool {
        let states = |loads: &Self| -> Vec<(String, PodState)> {
            let pods = loads.pods.values();
            pods.map(|load| (load.name.clone(), load.state.clone()))
                .collect()
        };
        self.listed.is_some() == other.listed.is_some() && states(self) == states(other)
    }

    /// Notes what the log of a Pod says, or why it could not be read.
    pub(crate) fn set(
        &mut self,
        uid: &str,
        read: Result<LogReading, &'static str>,
        expected: Expected<'_>,
    ) {
        let Some(load) = self.pods.get_mut(uid) else {
            return;
        };
        load.reads += 1;
        load.state = load.after(read, expected);
    }

    /// Counts the Pods in a state.
    pub(crate) fn count(&self, is_in: impl Fn(&PodState) -> bool) -> usize {
        self.pods.values().filter(|load| is_in(&load.state)).count()
    }

    /// Returns the number of Pods that have loaded the configuration.
    pub(crate) fn loaded(&self) -> usize {
        self.count(|state| *state == PodState::Loaded)
    }

    /// Returns true if there are Pods, and all have loaded the configuration.
    pub(crate) fn is_complete(&self) -> bool {
        !self.pods.is_empty() && self.loaded() == self.pods.len()
    }
}

impl PodLoad {
    /// Returns the state after the log was read.
    fn after(
        &mut self,
        read: Result<LogReading, &'static str>,
        expected: Expected<'_>,
    ) -> PodState {
        let unknown = |why: &str| {
            if expected.is_late {
                PodState::Unknown(why.to_owned())
            } else {
                PodState::Waiting
            }
        };
        let reading = match read {
            Ok(reading) => reading,
            Err(why) => return unknown(why),
        };
        self.runs.extend(reading.runs);
        let mut refused = None;
        match reading.reload {
            Some(Reload::Begun(since, components)) => self.begun = Some((since, components)),
            Some(Reload::Refused(at, why)) => {
                self.begun = None;
                // An older refusal is that of an older configuration.
                refused = Some(why).filter(|_| at >= expected.published);
            }
            Some(Reload::Done) => self.begun = None,
            None => {}
        }
        let runs = |line: &String| self.runs.get(file_of(line)) == Some(line);
        if let PodState::CrashLooping(_) = self.state {
            return self.state.clone();
        }
        if expected.lines.iter().all(runs) {
            return PodState::Loaded;
        }
        match (&self.begun, refused) {
            // The first reasons stay, so that a status does not change with each repetition.
            (_, Some(_)) if matches!(self.state, PodState::Refused(_)) => self.state.clone(),
            (_, Some(why)) => PodState::Refused(why),
            (Some((since, components)), None) => {
                let time = Timestamp::now().duration_since(*since);
                if time >= SignedDuration::try_from(expected.timeout).unwrap_or(SignedDuration::MAX)
                {
                    PodState::Stuck(components.clone())
                } else {
                    PodState::Waiting
                }
            }
            (None, None) => unknown("its log does not say which configuration runs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, restarts: i32, is_running: bool) -> Pod {
        let state = if is_running {
            json!({"running": {}})
        } else {
            json!({"waiting": {}})
        };
        let pod = json!({
            "metadata": {"name": format!("pod-{uid}"), "uid": uid},
            "status": {"containerStatuses": [{
                "name": "vector", "image": "", "imageID": "", "ready": is_running, "restartCount": restarts, "state": state,
            }]},
        });
        serde_json::from_value(pod).expect("a Pod")
    }

    #[test]
    fn the_pods_that_were_read_least_often_come_first() {
        let mut loads = Loads::default();
        loads.update(
            &[
                pod("a", 0, true),
                pod("b", 0, true),
                pod("c", 0, true),
                pod("d", 0, false),
            ],
            "vector",
            Timestamp::UNIX_EPOCH,
        );
        let names = |loads: &Loads, most| -> Vec<String> {
            loads
                .to_read(most)
                .into_iter()
                .map(|(uid, _)| uid)
                .collect()
        };
        assert_eq!(names(&loads, 2), ["a", "b"]);
        loads.set("a", Ok(LogReading::default()), expected(false));
        loads.set("b", Ok(running("file 1")), expected(false));
        // One that does not run has no log.
        assert_eq!(names(&loads, 9), ["c", "a"]);
        assert_eq!((loads.loaded(), loads.is_complete()), (1, false));
    }

    #[test]
    fn what_is_known_of_a_pod_ends_with_its_vector() {
        let mut loads = Loads::default();
        loads.update(&[pod("a", 0, true)], "vector", Timestamp::UNIX_EPOCH);
        loads.set("a", Ok(running("file 1")), expected(false));
        loads.update(&[pod("a", 0, true)], "vector", Timestamp::UNIX_EPOCH);
        assert!(loads.is_complete());
        loads.update(&[pod("a", 1, true)], "vector", Timestamp::UNIX_EPOCH);
        assert_eq!(loads.loaded(), 0);
        loads.update(&[], "vector", Timestamp::UNIX_EPOCH);
        assert!(!loads.is_complete());
    }

    #[test]
    fn a_vector_that_ends_again_and_again_stays_so_until_it_runs_for_a_while() {
        let mut pods = [pod("a", 3, false)];
        let statuses = pods[0].status.as_mut();
        let statuses = statuses.and_then(|status| status.container_statuses.as_mut());
        let status = &mut statuses.expect("a status")[0];
        let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let last = json!({"terminated": {"exitCode": 78, "reason": "Error"}});
        status.state = serde_json::from_value(state).expect("a state");
        status.last_state = serde_json::from_value(last).expect("a state");
        let mut loads = Loads::default();
        loads.update(&pods, "vector", Timestamp::UNIX_EPOCH);
        let crashes = loads.pods["a"].state.clone();
        let PodState::CrashLooping(why) = &crashes else {
            panic!("{loads:?}");
        };
        assert!(
            why.contains("the last time with Error, exit code 78"),
            "{why}"
        );
        // It runs again, and has read the published files.
        let running_since = |time: Timestamp| {
            let mut pod = pod("a", 4, true);
            let status = pod.status.as_mut();
            let status = status.and_then(|status| status.container_statuses.as_mut());
            let state = status.and_then(|statuses| statuses[0].state.as_mut()?.running.as_mut());
            state.expect("it runs").started_at = Some(Time(time));
            pod
        };
        let now = Timestamp::now();
        for _ in 0..2 {
            loads.update(&[running_since(now)], "vector", Timestamp::UNIX_EPOCH);
            loads.set("a", Ok(running("file 1")), expected(false));
            assert_eq!(loads.pods["a"].state, crashes);
        }
        loads.update(&[running_since(now - STEADY * 2)], "vector", now);
        assert_eq!(loads.pods["a"].state, PodState::Waiting);
        loads.set("a", Ok(running("file 1")), expected(false));
        assert!(loads.is_complete());
    }

    #[test]
    fn a_pod_that_starts_later_reads_the_published_files() {
        let published = Timestamp::UNIX_EPOCH;
        for (minutes, is_loaded) in [(1, false), (10, true)] {
            let mut started = pod("a", 0, true);
            let status = started
                .status
                .as_mut()
                .and_then(|status| status.container_statuses.as_mut());
            let state = status.and_then(|statuses| statuses[0].state.as_mut()?.running.as_mut());
            let at = published + Duration::from_mins(minutes);
            state.expect("it runs").started_at = Some(Time(at));
            let mut loads = Loads::default();
            loads.update(&[started], "vector", published);
            assert_eq!(loads.is_complete(), is_loaded, "{minutes}");
        }
        let mut loads = Loads::default();
        loads.update(&[pod("a", 0, true)], "vector", published);
        loads.assume_loaded();
        assert!(loads.is_complete());
    }

    fn running(line: &str) -> LogReading {
        LogReading {
            runs: BTreeMap::from([(file_of(line).to_owned(), line.to_owned())]),
            reload: None,
        }
    }

    fn reload(reload: Reload) -> LogReading {
        LogReading {
            reload: Some(reload),
            ..LogReading::default()
        }
    }

    static LINES: LazyLock<Vec<String>> = LazyLock::new(|| vec!["file 1".to_owned()]);

    fn expected(is_late: bool) -> Expected<'static> {
        Expected {
            lines: &LINES,
            published: Timestamp::UNIX_EPOCH + GRACE,
            timeout: GRACE,
            is_late,
        }
    }

    fn of_one() -> Loads {
        let mut loads = Loads::default();
        loads.update(&[pod("a", 0, true)], "vector", Timestamp::UNIX_EPOCH);
        loads
    }

    fn state(read: Result<LogReading, &'static str>, is_late: bool) -> PodState {
        let mut loads = of_one();
        loads.set("a", read, expected(is_late));
        loads.pods["a"].state.clone()
    }

    #[test]
    fn a_pod_is_stuck_or_unknown_only_after_a_while() {
        let now = Timestamp::now();
        let begun = |at: Timestamp| Ok(reload(Reload::Begun(at, vec!["x".to_owned()])));
        assert_eq!(state(begun(now), true), PodState::Waiting);
        let stuck = PodState::Stuck(vec!["x".to_owned()]);
        assert_eq!(state(begun(now - GRACE), false), stuck);
        assert_eq!(state(Err("no"), false), PodState::Waiting);
        assert_eq!(state(Err("no"), true), PodState::Unknown("no".to_owned()));
        assert_eq!(state(Ok(running("file 1")), false), PodState::Loaded);
    }

    #[test]
    fn a_refusal_before_the_publication_is_not_one_of_it() {
        let published = expected(false).published;
        let refused = |at| Ok(reload(Reload::Refused(at, "why".to_owned())));
        assert_eq!(
            state(refused(published), false),
            PodState::Refused("why".to_owned())
        );
        let before = published - Duration::from_secs(1);
        assert_eq!(state(refused(before), false), PodState::Waiting);
    }

    #[test]
    fn what_a_pod_runs_and_a_reload_that_has_begun_outlast_a_publication() {
        // The configuration is published again after another one that was refused: Vector prints nothing.
        let mut loads = of_one();
        loads.set("a", Ok(running("file 1")), expected(false));
        loads = loads.for_next_configuration();
        assert_eq!(loads.loaded(), 0);
        loads.set("a", Ok(reload(Reload::Done)), expected(false));
        assert_eq!(loads.loaded(), 1);
        // Another one ran in between.
        loads = loads.for_next_configuration();
        loads.set("a", Ok(running("file 2")), expected(false));
        assert_eq!(loads.loaded(), 0);
        // Its reload has begun before the last publication, and the log has not got the line any more.
        let begun = Reload::Begun(Timestamp::now() - GRACE, Vec::new());
        loads.set("a", Ok(reload(begun)), expected(false));
        loads = loads.for_next_configuration();
        loads.set("a", Ok(LogReading::default()), expected(false));
        assert_eq!(loads.pods["a"].state, PodState::Stuck(Vec::new()));
    }

    #[test]
    fn the_same_is_told_until_a_state_changes() {
        let mut loads = of_one();
        let before = loads.clone();
        loads.set("a", Ok(LogReading::default()), expected(false));
        assert!(loads.tells_the_same(&before));
        loads.set("a", Ok(running("file 1")), expected(false));
        assert!(!loads.tells_the_same(&before));
    }
}
