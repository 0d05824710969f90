//! Limit of the Pods that check configurations at the same time.
//!
//! Free slots go to the workloads in the order in which they began to wait: a workload with many checks gets one after
//! the other and lets those that wait go first. A slot that is not used is given to others.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use lockstep_controller::ReconcileTrigger;

/// Time in which a workload must start the Pod for a slot, and in which it must come for a slot that is free: the Pod may
/// be rejected by a quota, and the workload may be paused.
const USE_WITHIN: Duration = Duration::from_mins(1);

/// Limit of the Pods that all workloads together have at the same time.
#[derive(Debug)]
pub struct CheckSlots {
    most: usize,
    /// Maximum time of a check.
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Slots by UID of the workload.
    taken: BTreeMap<String, Taken>,
    /// Workloads that wait for a slot. The first one is the next.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Taken {
    /// Number of Pods that exist.
    running: usize,
    /// End of their slots, if the workload does not come back.
    running_until: Instant,
    /// Number of Pods that the workload was allowed to start, and that do not exist yet.
    unused: usize,
    /// End of these slots.
    unused_until: Instant,
    /// Number of Pods that the workload would have started.
    wanted: usize,
    /// Reconciler of the workload. With the end of its leadership term, its Pods do not count any more: another replica
    /// counts them.
    term: Weak<()>,
}

#[derive(Debug)]
struct Waiting {
    uid: String,
    trigger: ReconcileTrigger,
    /// End of the time in which the workload must come, once it was woken for a free slot.
    woken_until: Option<Instant>,
}

/// Request of a workload for slots.
pub(crate) struct SlotRequest<'a> {
    /// UID of the workload.
    pub(crate) uid: &'a str,
    pub(crate) trigger: ReconcileTrigger,
    pub(crate) term: &'a Arc<()>,
    /// Number of its Pods that exist.
    pub(crate) running: usize,
    /// Number of Pods that it would start.
    pub(crate) wanted: usize,
}

/// Slots that a workload has got.
#[derive(Debug, PartialEq)]
pub(crate) struct Granted {
    /// Number of Pods that it may start.
    pub(crate) new: usize,
    /// Workloads that may get a slot now.
    pub(crate) wake: Vec<ReconcileTrigger>,
    /// Time after which a slot of another workload may have expired, if there are too few.
    pub(crate) next: Option<Duration>,
}

impl CheckSlots {
    /// Returns a limit. `timeout` is the maximum time of a check.
    #[must_use]
    pub fn new(most: NonZeroUsize, timeout: Duration) -> Self {
        Self {
            most: most.get(),
            timeout,
            state: Mutex::default(),
        }
    }

    /// Replaces the slots of a workload. It keeps those of Pods that exist, even if they are too many after a restart of
    /// the controller.
    pub(crate) fn take(&self, request: SlotRequest<'_>, now: Instant) -> Granted {
        let SlotRequest {
            uid,
            trigger,
            term,
            running,
            wanted,
        } = request;
        let mut state = self.state();
        let before = state.taken.remove(uid);
        state.expire(now);
        let place = state.waiting.iter().position(|it| it.uid == uid);
        let others = state.waiting.len() - usize::from(place.is_some());
        let unused = before.map(|it| (it.unused_after(running, wanted), it.unused_until));
        let unused = unused.filter(|(slots, _)| *slots > 0);
        let gives_way = others > 0 && unused.is_some_and(|(_, until)| until <= now);
        let (kept, unused_until) = unused
            .filter(|(_, until)| *until > now)
            .unwrap_or((0, now + USE_WITHIN));
        let free = self.most.saturating_sub(state.count() + running);
        let kept = kept.min(free);
        let more = allowed(free - kept, place, others);
        let new = if gives_way {
            0
        } else {
            wanted.min(kept + more)
        };
        if running + new > 0 {
            let taken = Taken {
                running,
                running_until: now + self.timeout + USE_WITHIN,
                unused: new,
                unused_until,
                wanted,
                term: Arc::downgrade(term),
            };
            state.taken.insert(uid.to_owned(), taken);
        }
        state.wait(uid, trigger, new < wanted, new > 0 || gives_way);
        let wake = state.wake(self.most, now, uid);
        Granted {
            new,
            wake,
            next: state.next_expiry(uid, now).filter(|_| new < wanted),
        }
    }

    /// Returns the slots of a workload that is gone, and the workloads that may get one of them.
    pub(crate) fn release(&self, uid: &str, now: Instant) -> Vec<ReconcileTrigger> {
        let mut state = self.state();
        state.waiting.retain(|it| it.uid != uid);
        state.taken.remove(uid);
        state.expire(now);
        state.wake(self.most, now, uid)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of free slots that a workload may take. One is left for each workload that waits, those behind it
/// unless it is the only one.
fn allowed(free: usize, place: Option<usize>, others: usize) -> usize {
    let ahead = place.unwrap_or(others);
    let left = free.saturating_sub(ahead);
    left.saturating_sub(others - ahead).max(left.min(1))
}

impl Taken {
    /// Returns the number of slots for which no Pod has appeared, by the numbers with which the workload has come back.
    fn unused_after(&self, running: usize, wanted: usize) -> usize {
        let appeared = running.saturating_sub(self.running);
        let done = self.wanted.saturating_sub(wanted);
        self.unused.saturating_sub(appeared.max(done)).min(wanted)
    }
}

impl State {
    fn count(&self) -> usize {
        let taken = self.taken.values();
        taken.map(|it| it.running + it.unused).sum()
    }

    /// Removes the slots that nothing uses, and the workloads that did not come for one.
    fn expire(&mut self, now: Instant) {
        self.taken.retain(|_, it| {
            if it.unused_until <= now {
                it.unused = 0;
            }
            if it.running_until <= now {
                it.running = 0;
            }
            it.term.strong_count() > 0 && it.running + it.unused > 0
        });
        let is_in_time = |it: &Waiting| it.woken_until.is_none_or(|until| until > now);
        self.waiting.retain(is_in_time);
    }

    /// Sets if a workload waits. One that has got a slot, or has not used it, waits behind the others.
    fn wait(&mut self, uid: &str, trigger: ReconcileTrigger, waits: bool, is_last: bool) {
        let place = self.waiting.iter().position(|it| it.uid == uid);
        if let Some(place) = place {
            self.waiting.remove(place);
        }
        if !waits {
            return;
        }
        let place = place.filter(|_| !is_last).unwrap_or(self.waiting.len());
        let waiting = Waiting {
            uid: uid.to_owned(),
            trigger,
            woken_until: None,
        };
        self.waiting.insert(place, waiting);
    }

    /// Returns the workloads for which there are free slots, except for the one that has just come.
    fn wake(&mut self, most: usize, now: Instant, except: &str) -> Vec<ReconcileTrigger> {
        let free = most.saturating_sub(self.count());
        let waiting = self.waiting.iter_mut().take(free);
        let woken = waiting.filter(|it| it.woken_until.is_none() && it.uid != except);
        woken
            .map(|it| {
                it.woken_until = Some(now + USE_WITHIN);
                it.trigger.clone()
            })
            .collect()
    }

    /// Returns the time until a slot of another workload expires, or until one did not come for its slot.
    fn next_expiry(&self, uid: &str, now: Instant) -> Option<Duration> {
        let others = self.taken.iter().filter(|(it, _)| *it != uid);
        let taken = others.flat_map(|(_, it)| {
            let running = (it.running > 0).then_some(it.running_until);
            running
                .into_iter()
                .chain((it.unused > 0).then_some(it.unused_until))
        });
        let woken = self.waiting.iter().filter_map(|it| it.woken_until);
        let next = taken.chain(woken).min()?;
        Some(next.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(5);

    struct World {
        slots: CheckSlots,
        term: Arc<()>,
        now: Instant,
    }

    impl World {
        fn new(most: usize) -> Self {
            let most = NonZeroUsize::new(most).expect("not zero");
            Self {
                slots: CheckSlots::new(most, TIMEOUT),
                term: Arc::new(()),
                now: Instant::now(),
            }
        }

        fn granted(&self, name: &str, running: usize, wanted: usize) -> Granted {
            let request = SlotRequest {
                uid: name,
                trigger: ReconcileTrigger {
                    controller: "vector".to_owned(),
                    namespace: Some("n".to_owned()),
                    name: name.to_owned(),
                },
                term: &self.term,
                running,
                wanted,
            };
            self.slots.take(request, self.now)
        }

        /// Returns the number of new Pods, and the workloads that are woken.
        fn take(&self, name: &str, running: usize, wanted: usize) -> (usize, Vec<String>) {
            let granted = self.granted(name, running, wanted);
            (granted.new, names(granted.wake))
        }
    }

    fn names(woken: Vec<ReconcileTrigger>) -> Vec<String> {
        woken.into_iter().map(|it| it.name).collect()
    }

    fn woken(names: &[&str]) -> Vec<String> {
        names.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn all_workloads_together_have_at_most_the_limit_and_a_free_slot_wakes_the_next_that_waits() {
        let world = World::new(3);
        assert_eq!(world.take("a", 0, 2), (2, vec![]));
        assert_eq!(world.take("b", 0, 2), (1, vec![]));
        assert_eq!(world.take("c", 0, 1), (0, vec![]));
        // The same result again, as after another change of the workload.
        assert_eq!(world.take("a", 2, 0), (0, vec![]));
        assert_eq!(world.take("a", 1, 0), (0, woken(&["b"])));
        assert_eq!(world.take("b", 1, 1), (1, vec![]));
        assert_eq!(world.take("c", 0, 1), (0, vec![]));
        assert_eq!(names(world.slots.release("b", world.now)), ["c"]);
        assert_eq!(world.take("c", 0, 4), (2, vec![]));
    }

    #[test]
    fn a_workload_with_many_checks_lets_those_that_wait_go_first() {
        let world = World::new(2);
        assert_eq!(world.take("many", 0, 9), (2, vec![]));
        assert_eq!(world.take("few", 0, 2), (0, vec![]));
        // One of its Pods has ended: the slot is for the other workload, and the next one for this one again.
        assert_eq!(world.take("many", 1, 7), (1, vec![]));
        assert_eq!(world.take("many", 1, 6), (0, woken(&["few"])));
        assert_eq!(world.take("few", 0, 2), (1, vec![]));
        assert_eq!(world.take("many", 0, 6), (1, vec![]));
        assert_eq!(world.take("few", 0, 1), (1, vec![]));
    }

    #[test]
    fn a_slot_that_is_not_used_is_given_to_others() {
        let mut world = World::new(1);
        assert_eq!(world.take("rejected", 0, 1), (1, vec![]));
        assert_eq!(world.granted("b", 0, 1).next, Some(USE_WITHIN));
        world.now += USE_WITHIN / 2;
        assert_eq!(world.take("rejected", 0, 1), (1, vec![]), "it tries again");
        world.now += USE_WITHIN / 2;
        assert_eq!(world.take("rejected", 0, 1), (0, woken(&["b"])));
        assert_eq!(world.take("b", 0, 1), (1, vec![]));
        // While no other workload waits, it may try on.
        assert_eq!(world.take("b", 0, 0), (0, woken(&["rejected"])));
        for _ in 0..3 {
            assert_eq!(world.take("rejected", 0, 1).0, 1);
            world.now += USE_WITHIN;
        }
    }

    #[test]
    fn a_workload_that_does_not_come_back_loses_its_slots() {
        let mut world = World::new(1);
        assert_eq!(world.take("paused", 0, 1), (1, vec![]));
        assert_eq!(world.take("paused", 1, 0), (0, vec![]));
        let next = world.granted("b", 0, 1).next;
        assert_eq!(next, Some(TIMEOUT + USE_WITHIN));
        world.now += TIMEOUT + USE_WITHIN;
        assert_eq!(world.take("b", 0, 1), (1, vec![]));
        // Nor does one keep a slot that it was woken for.
        assert_eq!(world.take("gone", 0, 1), (0, vec![]));
        assert_eq!(world.take("c", 0, 1), (0, vec![]));
        assert_eq!(world.take("b", 0, 0), (0, woken(&["gone"])));
        assert_eq!(world.granted("c", 0, 1).next, Some(USE_WITHIN));
        world.now += USE_WITHIN;
        assert_eq!(world.take("c", 0, 1), (1, vec![]));
    }

    #[test]
    fn pods_that_exist_after_a_restart_are_kept_and_those_of_an_earlier_term_do_not_count() {
        let mut world = World::new(1);
        assert_eq!(world.take("a", 3, 1).0, 0);
        assert_eq!(world.take("b", 0, 1).0, 0);
        world.term = Arc::new(());
        world.slots.release("a", world.now);
        assert_eq!(world.take("c", 3, 0).0, 0);
        world.term = Arc::new(());
        assert_eq!(world.take("b", 0, 1).0, 1);
    }
}
