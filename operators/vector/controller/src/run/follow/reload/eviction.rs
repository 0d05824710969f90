//! Evictions of Pods whose reload does not end.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, EvictParams, Preconditions};
use tokio::time::Instant;

use crate::run::follow::reload::observer::Target;
use crate::run::follow::reload::pod_state::{Loads, PodState};

/// Time between two evictions of a workload. It doubles with each eviction for one configuration, up to the longest.
const FIRST_WAIT: Duration = Duration::from_mins(1);
const LONGEST_WAIT: Duration = Duration::from_mins(30);

/// Evictions of all workloads of a kind.
#[derive(Default)]
pub(crate) struct Evictions {
    workloads: Mutex<HashMap<String, Evicted>>,
}

/// Evictions of a workload for one configuration.
struct Evicted {
    lines: Vec<String>,
    pods: HashSet<String>,
    next: Instant,
}

impl Evictions {
    /// Evicts a Pod that is stuck, if it is the turn of one. Returns the time until the next turn.
    pub(crate) async fn evict(
        &self,
        client: &Client,
        uid: &str,
        target: &Target,
        loads: &Loads,
    ) -> Option<Duration> {
        let (pod_uid, name) = match self.next(uid, target, loads, Instant::now()) {
            Turn::Now(uid, name) => (uid, name),
            Turn::In(time) => return Some(time),
            Turn::Never => return None,
        };
        let pods: Api<Pod> = Api::namespaced(client.clone(), &target.namespace);
        // A Pod of a StatefulSet has the name of the one before it.
        let params = EvictParams {
            delete_options: Some(DeleteParams {
                preconditions: Some(Preconditions {
                    uid: Some(pod_uid.clone()),
                    ..Preconditions::default()
                }),
                ..DeleteParams::default()
            }),
            ..EvictParams::default()
        };
        match pods.evict(&name, &params).await {
            Ok(_) => {
                tracing::warn!(
                    pod = name,
                    namespace = target.namespace,
                    "evicted a Pod whose reload does not end"
                );
                Some(self.note(uid, target, Some(pod_uid), Instant::now()))
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => None,
            // A budget does not allow it now.
            Err(error) => {
                tracing::warn!(%error, pod = name, namespace = target.namespace, "a Pod whose reload does not end cannot be evicted now");
                Some(self.note(uid, target, None, Instant::now()))
            }
        }
    }

    /// Forgets a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn next(&self, uid: &str, target: &Target, loads: &Loads, now: Instant) -> Turn {
        let mut workloads = self.lock();
        let evicted = workloads
            .get(uid)
            .filter(|evicted| evicted.lines == target.lines);
        let is_left = |pod: &String| evicted.is_none_or(|evicted| !evicted.pods.contains(pod));
        let mut stuck = loads
            .pods
            .iter()
            .filter(|(pod, load)| matches!(load.state, PodState::Stuck(_)) && is_left(pod));
        let Some((pod, load)) = stuck.next() else {
            return Turn::Never;
        };
        if let Some(wait) = evicted.and_then(|evicted| evicted.next.checked_duration_since(now))
            && !wait.is_zero()
        {
            return Turn::In(wait);
        }
        // The one before must run first.
        let others = loads.pods.iter().filter(|(other, _)| *other != pod);
        if loads.has_leaving || others.into_iter().any(|(_, load)| !load.is_ready) {
            return Turn::In(FIRST_WAIT);
        }
        if evicted.is_none() {
            workloads.remove(uid);
        }
        Turn::Now(pod.clone(), load.name.clone())
    }

    /// Notes an attempt. Returns the time until the next one.
    fn note(&self, uid: &str, target: &Target, pod: Option<String>, now: Instant) -> Duration {
        let mut workloads = self.lock();
        let evicted = workloads.entry(uid.to_owned()).or_insert_with(|| Evicted {
            lines: target.lines.clone(),
            pods: HashSet::new(),
            next: now,
        });
        evicted.pods.extend(pod);
        let doublings = u32::try_from(evicted.pods.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings));
        let wait = wait.min(LONGEST_WAIT);
        evicted.next = now + wait;
        wait
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Evicted>> {
        self.workloads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turn of a Pod.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// UID and name of the Pod.
    Now(String, String),
    In(Duration),
    Never,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::jiff::Timestamp;

    use super::*;
    use crate::run::follow::reload::pod_state::PodLoad;

    fn target(line: &str) -> Target {
        Target {
            namespace: "n".to_owned(),
            labels: BTreeMap::new(),
            container: "vector".to_owned(),
            lines: vec![line.to_owned()],
            published: Timestamp::UNIX_EPOCH,
        }
    }

    fn loads(pods: &[(&str, bool, bool)]) -> Loads {
        let pods = pods.iter().map(|(uid, is_stuck, is_ready)| {
            let load = PodLoad {
                name: format!("pod-{uid}"),
                is_running: true,
                is_ready: *is_ready,
                state: if *is_stuck {
                    PodState::Stuck(Vec::new())
                } else {
                    PodState::Loaded
                },
                ..PodLoad::default()
            };
            ((*uid).to_owned(), load)
        });
        Loads {
            pods: pods.collect(),
            listed: None,
            has_leaving: false,
        }
    }

    #[test]
    fn pods_are_evicted_one_after_the_other_and_once_for_a_configuration() {
        let evictions = Evictions::default();
        let (one, now) = (target("one"), Instant::now());
        let turn = |name: &str| Turn::Now(name.to_owned(), format!("pod-{name}"));
        let both = loads(&[("a", true, true), ("b", true, true), ("c", false, true)]);
        assert_eq!(evictions.next("w", &one, &both, now), turn("a"));
        let wait = evictions.note("w", &one, Some("a".to_owned()), now);
        assert_eq!(evictions.next("w", &one, &both, now), Turn::In(wait));
        let later = now + wait;
        // The Pod in its place does not run yet.
        let starting = loads(&[("b", true, true), ("d", false, false)]);
        assert_eq!(
            evictions.next("w", &one, &starting, later),
            Turn::In(FIRST_WAIT)
        );
        // One is being deleted.
        let leaving = Loads {
            has_leaving: true,
            ..both.clone()
        };
        assert_eq!(
            evictions.next("w", &one, &leaving, later),
            Turn::In(FIRST_WAIT)
        );
        assert_eq!(evictions.next("w", &one, &both, later), turn("b"));
        let longer = evictions.note("w", &one, Some("b".to_owned()), later);
        assert!(longer > wait);
        assert_eq!(
            evictions.next("w", &one, &both, later + longer),
            Turn::Never
        );
        // Another configuration, and one with which nothing is wrong.
        assert_eq!(evictions.next("w", &target("two"), &both, later), turn("a"));
        let well = loads(&[("a", false, true)]);
        assert_eq!(evictions.next("v", &one, &well, now), Turn::Never);
    }
}
