//! Limit of the Pods that check configurations at the same time.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lockstep_controller::ReconcileTrigger;

/// Limit of the Pods that all workloads together have at the same time.
#[derive(Debug)]
pub struct CheckSlots {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of Pods by UID of the workload.
    taken: BTreeMap<String, Taken>,
    /// Workloads that wait for a slot, by UID.
    waiting: BTreeMap<String, ReconcileTrigger>,
}

#[derive(Debug)]
struct Taken {
    pods: usize,
    /// Reconciler of the workload. With the end of its leadership term, its Pods do not count any more: another replica
    /// counts them.
    term: Weak<()>,
}

/// Slots that a workload has got.
#[derive(Debug, PartialEq)]
pub(crate) struct Granted {
    /// Number of Pods that it may start.
    pub(crate) new: usize,
    /// Workloads that may get a slot now.
    pub(crate) wake: Vec<ReconcileTrigger>,
}

impl CheckSlots {
    /// Returns a limit.
    #[must_use]
    pub fn new(most: NonZeroUsize) -> Self {
        Self {
            most: most.get(),
            state: Mutex::default(),
        }
    }

    /// Replaces the slots of a workload. It keeps those of Pods that exist, even if they are too many after a restart of
    /// the controller.
    pub(crate) fn take(
        &self,
        uid: &str,
        trigger: ReconcileTrigger,
        term: &Arc<()>,
        running: usize,
        wanted: usize,
    ) -> Granted {
        let mut state = self.state();
        state.taken.retain(|_, it| it.term.strong_count() > 0);
        let before = state.taken.remove(uid).map_or(0, |it| it.pods);
        let others: usize = state.taken.values().map(|it| it.pods).sum();
        let free = self.most.saturating_sub(others + running);
        let new = wanted.min(free);
        let pods = running + new;
        if pods > 0 {
            let term = Arc::downgrade(term);
            state.taken.insert(uid.to_owned(), Taken { pods, term });
        }
        state.waiting.remove(uid);
        let is_free = pods < before && others + pods < self.most;
        let wake = if is_free {
            std::mem::take(&mut state.waiting).into_values().collect()
        } else {
            Vec::new()
        };
        if new < wanted {
            state.waiting.insert(uid.to_owned(), trigger);
        }
        Granted { new, wake }
    }

    /// Returns the slots of a workload that is gone, and the workloads that may get one of them.
    pub(crate) fn release(&self, uid: &str) -> Vec<ReconcileTrigger> {
        let mut state = self.state();
        state.waiting.remove(uid);
        if state.taken.remove(uid).is_none() {
            return Vec::new();
        }
        std::mem::take(&mut state.waiting).into_values().collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(name: &str) -> ReconcileTrigger {
        ReconcileTrigger {
            controller: "vector".to_owned(),
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
        }
    }

    fn slots(most: usize) -> CheckSlots {
        CheckSlots::new(NonZeroUsize::new(most).expect("not zero"))
    }

    #[test]
    fn all_workloads_together_have_at_most_the_limit_and_a_free_slot_wakes_those_that_wait() {
        let (slots, term) = (slots(3), Arc::new(()));
        let take = |name: &str, running, wanted| {
            let granted = slots.take(name, trigger(name), &term, running, wanted);
            let wake = granted.wake.into_iter().map(|it| it.name);
            (granted.new, wake.collect::<Vec<_>>())
        };
        assert_eq!(take("a", 0, 2), (2, vec![]));
        assert_eq!(take("b", 0, 2), (1, vec![]));
        assert_eq!(take("c", 0, 1), (0, vec![]));
        // The same result again, as after another change of the workload.
        assert_eq!(take("a", 2, 0), (0, vec![]));
        assert_eq!(take("a", 1, 0), (0, vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!(take("b", 1, 1), (1, vec![]));
        assert_eq!(take("c", 0, 1), (0, vec![]));
        let woken = slots.release("b").into_iter().map(|it| it.name);
        assert_eq!(woken.collect::<Vec<_>>(), ["c"]);
        assert_eq!(take("c", 0, 4), (2, vec![]));
    }

    #[test]
    fn pods_that_exist_after_a_restart_are_kept_and_those_of_an_earlier_term_do_not_count() {
        let slots = slots(1);
        let term = Arc::new(());
        assert_eq!(slots.take("a", trigger("a"), &term, 3, 1).new, 0);
        assert_eq!(slots.take("b", trigger("b"), &term, 0, 1).new, 0);
        drop(term);
        let next = Arc::new(());
        assert_eq!(slots.take("b", trigger("b"), &next, 0, 1).new, 1);
    }
}
