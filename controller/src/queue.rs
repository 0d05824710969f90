//! What waits to be looked at: each object once, the most urgent first, and never twice at the same time.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::metrics::QueueMetrics;

/// Why an object is looked at: what somebody waits for goes before what can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// Something has changed.
    Event,
    /// The time that the last round asked for has come.
    Requeue,
    /// It stood when the watch began.
    Initial,
}

/// A queue of keys.
///
/// # Guarantees
///
/// A key is handed out to one worker at a time. What is added while it is worked on is handed out once
/// more after that; what is added twice before is handed out once.
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    /// How long a change waits for others that come with it.
    debounce: Duration,
    changed: Notify,
    metrics: QueueMetrics,
}

/// What a queue has at a moment.
pub(crate) struct QueueSnapshot<K> {
    /// With how long they have been worked on.
    pub(crate) processing: Vec<(K, Duration)>,
    pub(crate) ready: Vec<K>,
    /// With how long they have to wait yet.
    pub(crate) due: Vec<(K, Duration)>,
}

struct State<K> {
    /// In order of urgency, then of arrival.
    ready: BTreeMap<(Priority, u64), K>,
    /// In order of time.
    due: BTreeMap<(Instant, u64), (K, Priority)>,
    entries: HashMap<K, Entry>,
    arrivals: u64,
    is_closed: bool,
}

#[derive(Default)]
struct Entry {
    ready: Option<(Priority, u64)>,
    due: Option<(Instant, u64)>,
    /// Since when it could have been handed out.
    waits_since: Option<Instant>,
    works_since: Option<Instant>,
    /// Of the time that it was last handed out.
    number: u64,
    /// What came while it was worked on.
    again: Option<Priority>,
}

impl<K: Clone + Debug + Eq + Hash> Queue<K> {
    pub(crate) fn new(metrics: QueueMetrics, debounce: Duration) -> Self {
        Self {
            debounce,
            state: Mutex::new(State {
                ready: BTreeMap::new(),
                due: BTreeMap::new(),
                entries: HashMap::new(),
                arrivals: 0,
                is_closed: false,
            }),
            changed: Notify::new(),
            metrics,
        }
    }

    /// Adds a key, to be handed out after a time, and a change not before others could come with it. An earlier
    /// time that it already waits for stands.
    pub(crate) fn add(&self, key: K, priority: Priority, after: Duration) {
        let mut state = self.state();
        self.metrics.adds.inc();
        state.add(key, priority, after.max(self.least(priority)));
        self.notify(state);
    }

    /// Hands out the next key once there is one. None when the queue is closed.
    pub(crate) async fn next(&self) -> Option<K> {
        loop {
            // Whatever happens after this is noticed by it.
            let changed = self.changed.notified();
            let first_due = {
                let mut state = self.state();
                if state.is_closed {
                    // The others as well.
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.promote(now);
                if let Some((key, number, waited)) = state.take(now) {
                    self.metrics.queue_duration.observe(waited.as_secs_f64());
                    self.metrics.in_progress.start(number, now);
                    self.notify(state);
                    return Some(key);
                }
                state.due.keys().next().map(|(at, _)| *at)
            };
            match first_due {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = sleep_until(at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Takes a key back, to be handed out again after a time, if any: as after a change where something came in
    /// the meantime.
    pub(crate) fn done(&self, key: &K, again_after: Option<Duration>) {
        let mut state = self.state();
        let Some(mut entry) = state.entries.remove(key) else {
            return;
        };
        self.metrics.in_progress.finish(entry.number);
        if let Some(since) = entry.works_since.take() {
            self.metrics
                .work_duration
                .observe(since.elapsed().as_secs_f64());
        }
        match (entry.again, again_after) {
            (Some(priority), _) => state.add(key.clone(), priority, self.least(priority)),
            (None, Some(after)) => {
                self.metrics.retries.inc();
                state.add(key.clone(), Priority::Requeue, after);
            }
            (None, None) => {}
        }
        self.notify(state);
    }

    /// Hands out all that waits for its time, behind whatever is more urgent.
    pub(crate) fn expedite(&self) {
        let mut state = self.state();
        let keys: Vec<_> = state.entries.keys().cloned().collect();
        for key in keys {
            self.metrics.adds.inc();
            state.add(key, Priority::Initial, Duration::ZERO);
        }
        self.notify(state);
    }

    /// How long a key waits at least.
    fn least(&self, priority: Priority) -> Duration {
        match priority {
            Priority::Event => self.debounce,
            Priority::Requeue | Priority::Initial => Duration::ZERO,
        }
    }

    /// What is worked on and what waits, in order.
    pub(crate) fn snapshot(&self) -> QueueSnapshot<K> {
        let state = self.state();
        let now = Instant::now();
        let working = state.entries.iter();
        let working = working.filter_map(|(key, entry)| {
            let since = entry.works_since?;
            Some((key.clone(), now - since))
        });
        let due = state.due.iter();
        let due = due.map(|((at, _), (key, _))| (key.clone(), at.saturating_duration_since(now)));
        QueueSnapshot {
            processing: working.collect(),
            ready: state.ready.values().cloned().collect(),
            due: due.collect(),
        }
    }

    /// Drops a key that nobody has to look at any more.
    pub(crate) fn remove(&self, key: &K) {
        let mut state = self.state();
        state.remove(key);
        self.notify(state);
    }

    /// Hands out nothing any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.ready.clear();
        state.due.clear();
        self.notify(state);
    }

    /// Until nothing is handed out any more.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state().is_closed {
                self.changed.notify_one();
                return;
            }
            changed.await;
        }
    }

    /// Wakes one worker, who wakes the next one if there is more to do.
    fn notify(&self, state: MutexGuard<'_, State<K>>) {
        let depth = i64::try_from(state.ready.len()).unwrap_or(i64::MAX);
        self.metrics.depth.set(depth);
        drop(state);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn add(&mut self, key: K, priority: Priority, after: Duration) {
        if self.is_closed {
            return;
        }
        let now = Instant::now();
        self.arrivals += 1;
        let arrival = self.arrivals;
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.works_since.is_some() {
            entry.again = Some(entry.again.map_or(priority, |other| other.min(priority)));
            return;
        }
        if let Some(place) = entry.ready {
            if priority < place.0 {
                self.ready.remove(&place);
                // Among the urgent ones it is as old as it is.
                let place = (priority, place.1);
                entry.ready = Some(place);
                self.ready.insert(place, key);
            }
            return;
        }
        let at = now + after;
        if let Some(place) = entry.due {
            if place.0 <= at {
                return;
            }
            self.due.remove(&place);
            entry.due = None;
        }
        if after.is_zero() {
            entry.waits_since = Some(now);
            entry.ready = Some((priority, arrival));
            self.ready.insert((priority, arrival), key);
        } else {
            entry.due = Some((at, arrival));
            self.due.insert((at, arrival), (key, priority));
        }
    }

    fn remove(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.again = None;
        if let Some(place) = entry.ready.take() {
            self.ready.remove(&place);
        }
        if let Some(place) = entry.due.take() {
            self.due.remove(&place);
        }
        if entry.works_since.is_none() {
            self.entries.remove(key);
        }
    }

    /// Makes ready what has waited long enough.
    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.due.first_entry() {
            let (at, arrival) = *first.key();
            if at > now {
                return;
            }
            let (key, priority) = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.due = None;
                entry.waits_since = Some(at);
                entry.ready = Some((priority, arrival));
                self.ready.insert((priority, arrival), key);
            }
        }
    }

    /// The most urgent key, a number for this time, and how long it has waited.
    fn take(&mut self, now: Instant) -> Option<(K, u64, Duration)> {
        let ((_, number), key) = self.ready.pop_first()?;
        let entry = self.entries.entry(key.clone()).or_default();
        entry.ready = None;
        entry.works_since = Some(now);
        entry.number = number;
        let since = entry.waits_since.take();
        let waited = since.map_or(Duration::ZERO, |since| now - since);
        Some((key, number, waited))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn queue() -> Queue<&'static str> {
        Queue::new(QueueMetrics::default(), NOW)
    }

    /// What is handed out without waiting.
    fn at_once(queue: &Queue<&'static str>) -> Option<&'static str> {
        queue.next().now_or_never().flatten()
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_its_time_can_be_hastened_behind_what_is_urgent() {
        let queue = queue();
        queue.add("worked on", Priority::Event, NOW);
        assert_eq!(at_once(&queue), Some("worked on"));
        queue.add("later", Priority::Requeue, Duration::from_hours(1));
        queue.expedite();
        queue.add("urgent", Priority::Event, NOW);
        assert_eq!(at_once(&queue), Some("urgent"));
        assert_eq!(at_once(&queue), Some("later"));
        assert_eq!(at_once(&queue), None);
        queue.done(&"worked on", None);
        assert_eq!(at_once(&queue), Some("worked on"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_urgent_goes_first_and_the_older_before_the_newer() {
        let queue = queue();
        for (key, priority) in [
            ("start 1", Priority::Initial),
            ("start 2", Priority::Initial),
            ("due", Priority::Requeue),
            ("change 1", Priority::Event),
            ("start 2", Priority::Event),
            ("change 2", Priority::Event),
        ] {
            queue.add(key, priority, NOW);
        }
        let mut order = Vec::new();
        while let Some(key) = at_once(&queue) {
            order.push(key);
        }
        assert_eq!(order, ["start 2", "change 1", "change 2", "due", "start 1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_worked_on_by_one_and_once_more_for_what_comes_meanwhile() {
        let queue = queue();
        queue.add("a", Priority::Event, NOW);
        queue.add("a", Priority::Event, NOW);
        assert_eq!(at_once(&queue), Some("a"));
        queue.add("a", Priority::Event, NOW);
        queue.add("a", Priority::Initial, NOW);
        assert_eq!(at_once(&queue), None);
        queue.done(&"a", Some(Duration::from_hours(1)));
        assert_eq!(at_once(&queue), Some("a"));
        queue.done(&"a", None);
        assert_eq!(at_once(&queue), None);
        assert!(queue.state().entries.is_empty(), "nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_two_times_counts_and_a_change_does_not_wait_for_either() {
        let queue = queue();
        let begun = Instant::now();
        for seconds in [30, 10, 20] {
            queue.add("a", Priority::Requeue, Duration::from_secs(seconds));
        }
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(begun.elapsed().as_secs(), 10);
        queue.done(&"a", Some(Duration::from_mins(1)));
        queue.add("a", Priority::Event, NOW);
        assert_eq!(at_once(&queue), Some("a"));
        queue.done(&"a", None);
        assert!(queue.state().due.is_empty(), "it has been looked at");
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_come_together_are_one_and_the_last_of_many_is_not_put_off() {
        let debounce = Duration::from_secs(2);
        let queue = Queue::new(QueueMetrics::default(), debounce);
        let begun = Instant::now();
        queue.add("a", Priority::Requeue, Duration::from_hours(6));
        queue.add("a", Priority::Event, NOW);
        tokio::time::advance(Duration::from_secs(1)).await;
        queue.add("a", Priority::Event, NOW);
        assert_eq!(at_once(&queue), None);
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(begun.elapsed(), debounce, "counted from the first of them");
        queue.add("a", Priority::Event, NOW);
        queue.done(&"a", None);
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(begun.elapsed(), 2 * debounce);
        queue.add("b", Priority::Initial, NOW);
        assert_eq!(at_once(&queue), Some("b"), "nobody has changed it");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_is_not_handed_out_and_leaves_nothing_behind() {
        let queue = queue();
        queue.add("worked on", Priority::Event, NOW);
        assert_eq!(at_once(&queue), Some("worked on"));
        queue.add("worked on", Priority::Event, NOW);
        queue.add("ready", Priority::Event, NOW);
        queue.add("due", Priority::Requeue, Duration::from_hours(6));
        for key in ["worked on", "ready", "due", "unknown"] {
            queue.remove(&key);
        }
        queue.done(&"worked on", None);
        assert_eq!(at_once(&queue), None);
        let state = queue.state();
        assert!(state.entries.is_empty() && state.ready.is_empty() && state.due.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn every_waiting_worker_is_told_of_what_comes_and_of_the_end() {
        let queue = Arc::new(queue());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move {
                    let mut done = Vec::new();
                    while let Some(key) = queue.next().await {
                        tokio::task::yield_now().await;
                        queue.done(&key, None);
                        done.push(key);
                    }
                    done
                })
            })
            .collect();
        tokio::task::yield_now().await;
        for key in ["a", "b", "c", "d"] {
            queue.add(key, Priority::Event, NOW);
        }
        while !queue.state().entries.is_empty() {
            tokio::task::yield_now().await;
        }
        queue.close();
        queue.add("late", Priority::Event, NOW);
        let done = futures::future::join_all(workers).await;
        let mut done: Vec<_> = done.into_iter().flatten().flatten().collect();
        done.sort_unstable();
        assert_eq!(done, ["a", "b", "c", "d"]);
    }
}
