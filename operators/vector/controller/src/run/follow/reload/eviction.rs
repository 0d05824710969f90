//! Evictions of Pods whose reload does not end.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, EvictParams, Preconditions};
use tokio::time::Instant;

use crate::run::follow::reload::observer::Target;
use crate::run::follow::reload::pod_loads::{Loads, PodLoad, PodState};

/// Time between two evictions of a workload. It doubles with each attempt for one configuration, up to the longest.
const FIRST_WAIT: Duration = Duration::from_mins(1);
const LONGEST_WAIT: Duration = Duration::from_mins(30);

/// Time for which a Pod that does not become ready keeps others from being evicted. After it, it may have no node.
const START: SignedDuration = SignedDuration::from_mins(10);

/// Evictions of all workloads of a kind.
#[derive(Default)]
pub(crate) struct Evictions {
    workloads: Mutex<HashMap<String, Evicted>>,
    /// Time of the first turn. What was evicted before, by another controller, is not known.
    since: OnceLock<Timestamp>,
}

/// Evictions of a workload for one configuration.
struct Evicted {
    lines: Vec<String>,
    pods: HashSet<String>,
    attempts: u32,
    next: Instant,
}

impl Evicted {
    /// Returns what the Pods tell about the evictions for a configuration: those that were created after its publication may
    /// be in the place of others. A controller that has started after it knows no more.
    fn estimated(target: &Target, loads: &Loads, now: Now) -> Self {
        let created = loads.pods.values().filter_map(|load| load.created);
        let later: Vec<_> = created.filter(|time| *time > target.published).collect();
        let attempts = u32::try_from(later.len()).unwrap_or(u32::MAX);
        let since = later
            .into_iter()
            .max()
            .map(|last| now.time.duration_since(last));
        let since = since.and_then(|since| Duration::try_from(since).ok());
        let left = since.and_then(|since| wait_after(attempts).checked_sub(since));
        Self {
            attempts,
            next: now.instant + left.unwrap_or_default(),
            ..Self::none(target, now)
        }
    }

    fn none(target: &Target, now: Now) -> Self {
        Self {
            lines: target.lines.clone(),
            pods: HashSet::new(),
            attempts: 0,
            next: now.instant,
        }
    }
}

/// Time, for waits and in the words of the API server.
#[derive(Clone, Copy)]
struct Now {
    instant: Instant,
    time: Timestamp,
}

impl Now {
    fn read() -> Self {
        Self {
            instant: Instant::now(),
            time: Timestamp::now(),
        }
    }
}

/// Returns the time until the next attempt after this number of them.
fn wait_after(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1);
    let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings));
    wait.min(LONGEST_WAIT)
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
        let (pod_uid, name) = match self.next(uid, target, loads, Now::read()) {
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
                Some(self.note(uid, Some(pod_uid), Instant::now()))
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => None,
            // A budget does not allow it now.
            Err(error) => {
                tracing::warn!(%error, pod = name, namespace = target.namespace, "a Pod whose reload does not end cannot be evicted now");
                Some(self.note(uid, None, Instant::now()))
            }
        }
    }

    /// Forgets a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn next(&self, uid: &str, target: &Target, loads: &Loads, now: Now) -> Turn {
        let since = *self.since.get_or_init(|| now.time);
        let is_stuck = |load: &PodLoad| matches!(load.state, PodState::Stuck(_));
        let mut workloads = self.lock();
        if !loads.pods.values().any(is_stuck) {
            return Turn::Never;
        }
        let known = workloads
            .remove(uid)
            .filter(|evicted| evicted.lines == target.lines);
        let evicted = known.unwrap_or_else(|| {
            if target.published < since {
                Evicted::estimated(target, loads, now)
            } else {
                Evicted::none(target, now)
            }
        });
        let evicted = workloads.entry(uid.to_owned()).insert_entry(evicted);
        let evicted = evicted.get();
        let mut stuck = loads.pods.iter();
        let stuck = stuck.find(|(pod, load)| is_stuck(load) && !evicted.pods.contains(*pod));
        let Some((pod, load)) = stuck else {
            return Turn::Never;
        };
        let wait = evicted.next.saturating_duration_since(now.instant);
        if !wait.is_zero() {
            return Turn::In(wait);
        }
        // The Pod in the place of the one before must run first. One from before the publication may wait for its node.
        let is_starting = |load: &PodLoad| {
            let is_new = load.created.is_none_or(|time| {
                time > target.published && now.time.duration_since(time) < START
            });
            is_new && !load.is_ready
        };
        let mut others = loads.pods.iter().filter(|(other, _)| *other != pod);
        if loads.has_leaving || others.any(|(_, load)| is_starting(load)) {
            return Turn::In(FIRST_WAIT);
        }
        Turn::Now(pod.clone(), load.name.clone())
    }

    /// Notes an attempt. Returns the time until the next one.
    fn note(&self, uid: &str, pod: Option<String>, now: Instant) -> Duration {
        let mut workloads = self.lock();
        let Some(evicted) = workloads.get_mut(uid) else {
            return FIRST_WAIT;
        };
        evicted.pods.extend(pod);
        evicted.attempts = evicted.attempts.saturating_add(1);
        let wait = wait_after(evicted.attempts);
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
    use crate::run::follow::reload::pod_loads::PodLoad;

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

    fn at(seconds: u64) -> Now {
        static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        let time = i64::try_from(seconds).expect("a time");
        Now {
            instant: *BEGIN + Duration::from_secs(seconds),
            time: Timestamp::from_second(time).expect("a time"),
        }
    }

    #[test]
    fn pods_are_evicted_one_after_the_other_and_once_for_a_configuration() {
        let evictions = Evictions::default();
        let (one, now) = (target("one"), at(0));
        let turn = |name: &str| Turn::Now(name.to_owned(), format!("pod-{name}"));
        let both = loads(&[("a", true, true), ("b", true, true), ("c", false, true)]);
        assert_eq!(evictions.next("w", &one, &both, now), turn("a"));
        let wait = evictions.note("w", Some("a".to_owned()), now.instant);
        assert_eq!(evictions.next("w", &one, &both, now), Turn::In(wait));
        let later = at(wait.as_secs());
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
        let longer = evictions.note("w", Some("b".to_owned()), later.instant);
        assert!(longer > wait);
        let last = at((wait + longer).as_secs());
        assert_eq!(evictions.next("w", &one, &both, last), Turn::Never);
        // Another configuration, and one with which nothing is wrong.
        assert_eq!(evictions.next("w", &target("two"), &both, later), turn("a"));
        let well = loads(&[("a", false, true)]);
        assert_eq!(evictions.next("v", &one, &well, now), Turn::Never);
    }

    #[test]
    fn an_old_pod_that_is_not_ready_keeps_no_other_one_from_being_evicted() {
        let evictions = Evictions::default();
        let mut pods = loads(&[("a", true, true), ("of-a-dead-node", false, false)]);
        let dead = pods.pods.get_mut("of-a-dead-node").expect("a Pod");
        dead.created = Some(Timestamp::UNIX_EPOCH - Duration::from_secs(1));
        let turn = evictions.next("w", &target("one"), &pods, at(0));
        assert_eq!(turn, Turn::Now("a".to_owned(), "pod-a".to_owned()));
    }

    #[test]
    fn a_new_pod_that_does_not_start_keeps_others_from_being_evicted_for_some_minutes() {
        let mut pods = loads(&[("a", true, true), ("pending", false, false)]);
        let pending = pods.pods.get_mut("pending").expect("a Pod");
        pending.created = Some(at(1).time);
        let turn =
            |seconds: u64| Evictions::default().next("w", &target("one"), &pods, at(seconds));
        assert_eq!(turn(500), Turn::In(FIRST_WAIT));
        assert_eq!(turn(700), Turn::Now("a".to_owned(), "pod-a".to_owned()));
    }

    #[test]
    fn pods_that_a_scale_up_adds_are_no_evictions_of_a_controller_that_has_seen_the_publication() {
        let mut pods = loads(&[("a", true, true), ("new", false, true)]);
        pods.pods.get_mut("new").expect("a Pod").created = Some(at(100).time);
        let published = Target {
            published: at(90).time,
            ..target("one")
        };
        let evictions = Evictions::default();
        assert_eq!(
            evictions.next("v", &published, &loads(&[]), at(1)),
            Turn::Never
        );
        let turn = evictions.next("w", &published, &pods, at(110));
        assert_eq!(turn, Turn::Now("a".to_owned(), "pod-a".to_owned()));
    }

    #[test]
    fn waits_grow_with_refused_evictions_and_outlive_the_controller() {
        let one = target("one");
        let evictions = Evictions::default();
        let mut pods = loads(&[("a", true, true), ("new", false, true)]);
        assert!(matches!(
            evictions.next("w", &one, &pods, at(0)),
            Turn::Now(..)
        ));
        let waits = [(); 8].map(|()| evictions.note("w", None, at(0).instant));
        assert_eq!(waits[..3], [1, 2, 4].map(|times| FIRST_WAIT * times));
        assert_eq!(waits[7], LONGEST_WAIT);
        // After a start, a Pod that is younger than the publication may be in the place of one that was evicted.
        let new = pods.pods.get_mut("new").expect("a Pod");
        new.created = Some(at(100).time);
        let restarted = Evictions::default();
        let turn = restarted.next("w", &one, &pods, at(130));
        assert_eq!(turn, Turn::In(Duration::from_secs(30)));
        let turn = restarted.next("w", &one, &pods, at(160));
        assert_eq!(turn, Turn::Now("a".to_owned(), "pod-a".to_owned()));
    }
}
