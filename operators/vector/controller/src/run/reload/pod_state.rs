//! States of the Pods of a workload, and what follows from them. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::run::reload::log::Logged;

/// Time after a publication within which a Pod may not have got it, or may still wait for its sinks, unless another one is set.
pub(crate) const GRACE: Duration = Duration::from_mins(5);

/// Time after a publication within which a refusal may be that of an older configuration.
const SETTLED: Duration = Duration::from_secs(10);

/// Time after a publication within which the kubelet may start a container with files from before it.
const UPDATED: Duration = Duration::from_mins(3);

/// State of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// It starts, or loads the configuration.
    Waiting,
    /// It has loaded the configuration.
    Loaded,
    /// Its last reload was refused: what its log says.
    Refused(String),
    /// Its reload does not end. With the components about which it warns.
    Stuck(Vec<String>),
    /// Its log tells nothing, for this reason.
    Unknown(String),
}

/// Pod that runs Vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodLoad {
    pub(crate) name: String,
    /// Number of restarts of Vector: after one, the state is not known any more.
    pub(crate) restarts: i32,
    /// If true, Vector runs, so that it has a log.
    pub(crate) is_running: bool,
    /// If true, the Pod is ready.
    pub(crate) is_ready: bool,
    pub(crate) state: PodState,
    /// Number of times that its log was read.
    pub(crate) reads: u32,
}

/// Pods of a workload by UID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loads {
    pub(crate) pods: BTreeMap<String, PodLoad>,
}

impl Loads {
    /// Takes over the Pods that exist now. `container` runs Vector. One that has started a while after the publication has
    /// read the published files at its start.
    pub(crate) fn update(&mut self, pods: &[Pod], container: &str, published: Timestamp) {
        let mut before = std::mem::take(&mut self.pods);
        for pod in pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        {
            let statuses = pod
                .status
                .iter()
                .flat_map(|it| it.container_statuses.iter().flatten());
            let vector = statuses.clone().find(|status| status.name == container);
            let restarts = vector.map_or(0, |status| status.restart_count);
            let running = vector.and_then(|status| status.state.as_ref()?.running.as_ref());
            let started = running.and_then(|running| running.started_at.as_ref());
            let is_later = started.is_some_and(|at| at.0 > published + UPDATED);
            let is_ready = vector.is_some_and(|status| status.ready);
            let uid = pod.uid().unwrap_or_default();
            let known = before
                .remove(&uid)
                .filter(|known| known.restarts == restarts);
            let (mut state, reads) =
                known.map_or((PodState::Waiting, 0), |it| (it.state, it.reads));
            if is_later && is_ready {
                state = PodState::Loaded;
            }
            let load = PodLoad {
                name: pod.name_any(),
                restarts,
                is_running: running.is_some(),
                is_ready,
                state,
                reads,
            };
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

    /// Notes what the log of a Pod says, or why it could not be read. If `is_late`, the Pod should have loaded the configuration by
    /// now; `age` is the time since the publication.
    pub(crate) fn set(
        &mut self,
        uid: &str,
        read: Result<Logged, String>,
        age: Duration,
        is_late: bool,
    ) {
        let Some(load) = self.pods.get_mut(uid) else {
            return;
        };
        load.reads += 1;
        load.state = match read {
            Ok(Logged::Loaded) => PodState::Loaded,
            Ok(Logged::Refused(why)) if age >= SETTLED => PodState::Refused(why),
            Ok(Logged::Begun(components)) if is_late => PodState::Stuck(components),
            Ok(Logged::Nothing) if is_late => {
                PodState::Unknown("its log does not say which configuration runs".to_owned())
            }
            Err(error) if is_late => PodState::Unknown(error),
            Ok(_) | Err(_) => PodState::Waiting,
        };
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

#[cfg(test)]
mod tests {
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
        loads.set("a", Ok(Logged::Nothing), Duration::ZERO, false);
        loads.set("b", Ok(Logged::Loaded), Duration::ZERO, false);
        // One that does not run has no log.
        assert_eq!(names(&loads, 9), ["c", "a"]);
        assert_eq!((loads.loaded(), loads.is_complete()), (1, false));
    }

    #[test]
    fn what_is_known_of_a_pod_ends_with_its_vector() {
        let mut loads = Loads::default();
        loads.update(&[pod("a", 0, true)], "vector", Timestamp::UNIX_EPOCH);
        loads.set("a", Ok(Logged::Loaded), Duration::ZERO, false);
        loads.update(&[pod("a", 0, true)], "vector", Timestamp::UNIX_EPOCH);
        assert!(loads.is_complete());
        loads.update(&[pod("a", 1, true)], "vector", Timestamp::UNIX_EPOCH);
        assert_eq!(loads.loaded(), 0);
        loads.update(&[], "vector", Timestamp::UNIX_EPOCH);
        assert!(!loads.is_complete());
    }

    #[test]
    fn a_pod_that_starts_later_reads_the_published_files() {
        let published = Timestamp::UNIX_EPOCH;
        for (minutes, is_loaded) in [(1, false), (10, true)] {
            let mut started = pod("a", 0, true);
            let status = started
                .status
                .as_mut()
                .and_then(|it| it.container_statuses.as_mut());
            let state = status.and_then(|it| it[0].state.as_mut()?.running.as_mut());
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

    #[test]
    fn a_pod_is_stuck_or_unknown_only_after_a_while() {
        let state = |read: Result<Logged, String>, age| {
            let mut loads = Loads::default();
            loads.update(&[pod("a", 0, true)], "vector", Timestamp::UNIX_EPOCH);
            loads.set("a", read, age, age >= GRACE);
            loads.pods["a"].state.clone()
        };
        let begun = || Ok(Logged::Begun(vec!["x".to_owned()]));
        assert_eq!(state(begun(), Duration::ZERO), PodState::Waiting);
        assert_eq!(state(begun(), GRACE), PodState::Stuck(vec!["x".to_owned()]));
        let refused = || Ok(Logged::Refused("why".to_owned()));
        assert_eq!(state(refused(), Duration::ZERO), PodState::Waiting);
        assert_eq!(
            state(refused(), SETTLED),
            PodState::Refused("why".to_owned())
        );
        assert_eq!(
            state(Err("no".to_owned()), Duration::ZERO),
            PodState::Waiting
        );
        assert_eq!(
            state(Err("no".to_owned()), GRACE),
            PodState::Unknown("no".to_owned())
        );
        assert_eq!(state(Ok(Logged::Loaded), Duration::ZERO), PodState::Loaded);
    }
}
