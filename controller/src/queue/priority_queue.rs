//! Priority queue of object keys: contains each key once and never hands it out twice at the same time.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cache::capacity::release_unused;
use crate::metrics::QueueMetrics;
use crate::queue::ready_keys::{Namespaced, Position, Priority, ReadyKeys};

/// Number of keys that are handed out, of which one is the oldest of all, whatever its priority.
const FAIRNESS: u64 = 8;

/// Priority queue of keys.
///
/// # Guarantees
///
/// Every key is handed out at some time, even if keys of a higher priority never run out: the objects that existed at the start
/// are reconciled although those that come back take all the time of the workers. Namespaces take turns, see [`ReadyKeys`].
///
/// A key is handed out to one worker at a time. A key that is added while a worker has it is handed out once more
/// afterwards; a key that is added twice before that is handed out once.
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    /// Time that a change waits for more changes of the same key.
    debounce: Duration,
    changed: Notify,
    metrics: QueueMetrics,
}

/// Content of a queue at one moment.
pub(crate) struct QueueSnapshot<K> {
    /// With the time since they were handed out.
    pub(crate) processing: Vec<(K, Duration)>,
    pub(crate) ready: Vec<K>,
    /// With the remaining time.
    pub(crate) due: Vec<(K, Duration)>,
}

struct State<K> {
    ready: ReadyKeys<K>,
    /// Ordered by time.
    due: BTreeMap<(Instant, u64), (K, Priority)>,
    entries: HashMap<K, Entry>,
    arrivals: u64,
    /// Number of keys that were handed out.
    handed_out: u64,
    is_closed: bool,
}

/// State of a key.
enum Entry {
    Ready {
        position: Position,
        /// Time since which the key could have been handed out.
        since: Instant,
    },
    Due {
        position: (Instant, u64),
    },
    Processing {
        since: Instant,
        /// Number of this hand-out.
        number: u64,
        /// Priority of an add while a worker has the key.
        again: Option<Priority>,
    },
}

impl<K: Clone + Debug + Eq + Hash + Namespaced> Queue<K> {
    /// Returns an empty queue. `workers` is the number of those that take keys, which the namespaces share; none if there is one
    /// namespace only.
    pub(crate) fn new(metrics: QueueMetrics, debounce: Duration, workers: Option<usize>) -> Self {
        Self {
            debounce,
            state: Mutex::new(State {
                ready: ReadyKeys::new(workers),
                due: BTreeMap::new(),
                entries: HashMap::new(),
                arrivals: 0,
                handed_out: 0,
                is_closed: false,
            }),
            changed: Notify::new(),
            metrics,
        }
    }

    /// Adds a key that is handed out after a time; a change waits at least for the debounce time. An earlier time
    /// that the key already waits for is kept.
    pub(crate) fn add(&self, key: K, priority: Priority, after: Duration) {
        let mut state = self.state.lock();
        self.metrics.adds.inc();
        state.add(key, priority, after.max(self.least(priority)));
        self.notify(state);
    }

    /// Hands out the next key once there is one. Returns none when the queue is closed.
    pub(crate) async fn next(&self) -> Option<K> {
        loop {
            // Registered first, so that no later change is missed.
            let changed = self.changed.notified();
            let first_due = {
                let mut state = self.state.lock();
                if state.is_closed {
                    // Wakes the other workers as well.
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

    /// Returns a key to the queue. It is handed out again after a time, if one is given. If it was added in the
    /// meantime, it is handed out as after that add.
    pub(crate) fn done(&self, key: &K, again_after: Option<Duration>) {
        let mut state = self.state.lock();
        let Some(Entry::Processing {
            since,
            number,
            again,
        }) = state.entries.remove(key)
        else {
            return;
        };
        state.ready.finish(key);
        self.metrics.in_progress.finish(number);
        self.metrics
            .work_duration
            .observe(since.elapsed().as_secs_f64());
        match (again, again_after) {
            (Some(priority), _) => state.add(key.clone(), priority, self.least(priority)),
            (None, Some(after)) => {
                self.metrics.retries.inc();
                state.add(key.clone(), Priority::Requeue, after);
            }
            (None, None) => release_unused(&mut state.entries),
        }
        self.notify(state);
    }

    /// Makes all delayed keys ready, behind those with a higher priority.
    pub(crate) fn expedite(&self) {
        let mut state = self.state.lock();
        let keys: Vec<_> = state.entries.keys().cloned().collect();
        for key in keys {
            self.metrics.adds.inc();
            state.add(key, Priority::Initial, Duration::ZERO);
        }
        self.notify(state);
    }

    /// Makes the keys ready within a period that would wait for longer, evenly spread over it. Keys that workers have are
    /// handed out once more, because they may be about to wait for longer, too.
    pub(crate) fn requeue_within(&self, period: Duration) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let late = state.due.range((now + period, u64::MAX)..);
        let late: Vec<_> = late.map(|(_, waiting)| waiting.clone()).collect();
        let count = u32::try_from(late.len()).unwrap_or(u32::MAX).max(1);
        for ((key, priority), place) in late.into_iter().zip(1..) {
            self.metrics.adds.inc();
            state.add(
                key,
                priority,
                period.mul_f64(f64::from(place) / f64::from(count)),
            );
        }
        let in_work = state.entries.iter();
        let in_work = in_work.filter(|(_, entry)| matches!(entry, Entry::Processing { .. }));
        let in_work: Vec<_> = in_work.map(|(key, _)| key.clone()).collect();
        for key in in_work {
            self.metrics.adds.inc();
            state.add(key, Priority::Initial, Duration::ZERO);
        }
        self.notify(state);
    }

    /// Returns the minimal delay of a priority.
    fn least(&self, priority: Priority) -> Duration {
        match priority {
            Priority::Event => self.debounce,
            Priority::Requeue | Priority::Initial => Duration::ZERO,
        }
    }

    /// Returns the keys that are processed and those that wait, in order.
    pub(crate) fn snapshot(&self) -> QueueSnapshot<K> {
        let state = self.state.lock();
        let now = Instant::now();
        let working = state.entries.iter();
        let working = working.filter_map(|(key, entry)| match entry {
            Entry::Processing { since, .. } => Some((key.clone(), now - *since)),
            Entry::Ready { .. } | Entry::Due { .. } => None,
        });
        let due = state.due.iter();
        let due = due.map(|((at, _), (key, _))| (key.clone(), at.saturating_duration_since(now)));
        QueueSnapshot {
            processing: working.collect(),
            ready: state.ready.iter().cloned().collect(),
            due: due.collect(),
        }
    }

    /// Removes a key that no longer needs a reconciliation.
    pub(crate) fn remove(&self, key: &K) {
        let mut state = self.state.lock();
        state.remove(key);
        self.notify(state);
    }

    /// Releases the memory for keys that were removed.
    pub(crate) fn shrink_to_fit(&self) {
        self.state.lock().entries.shrink_to_fit();
    }

    /// Closes the queue: nothing is handed out any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.ready.clear();
        state.due.clear();
        self.notify(state);
    }

    /// Waits until the queue is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state.lock().is_closed {
                self.changed.notify_one();
                return;
            }
            changed.await;
        }
    }

    /// Wakes one worker, which wakes the next one if there is more to do.
    fn notify(&self, state: MutexGuard<'_, State<K>>) {
        let depth = i64::try_from(state.ready.len()).unwrap_or(i64::MAX);
        self.metrics.depth.set(depth);
        drop(state);
        self.changed.notify_one();
    }
}

impl<K: Clone + Eq + Hash + Namespaced> State<K> {
    fn add(&mut self, key: K, priority: Priority, after: Duration) {
        if self.is_closed {
            return;
        }
        let now = Instant::now();
        self.arrivals += 1;
        let arrival = self.arrivals;
        let at = now + after;
        let mut slot = self.entries.entry(key);
        if let Slot::Occupied(entry) = &mut slot {
            match entry.get_mut() {
                Entry::Processing { again, .. } => {
                    *again = Some(again.map_or(priority, |other| other.min(priority)));
                    return;
                }
                Entry::Ready { position, .. } if priority < position.0 => {
                    if let Some(key) = self.ready.remove(*position) {
                        // Keeps its arrival number, so that its place among the urgent keys is by age.
                        position.0 = priority;
                        self.ready.insert(*position, key);
                    }
                    return;
                }
                Entry::Ready { .. } => return,
                Entry::Due { position } if position.0 <= at => return,
                Entry::Due { position } => drop(self.due.remove(position)),
            }
        }
        // The key of the map, with which all collections share one text.
        let key = slot.key().clone();
        slot.insert_entry(if after.is_zero() {
            let position = (priority, arrival);
            self.ready.insert(position, key);
            Entry::Ready {
                position,
                since: now,
            }
        } else {
            let position = (at, arrival);
            self.due.insert(position, (key, priority));
            Entry::Due { position }
        });
    }

    fn remove(&mut self, key: &K) {
        match self.entries.get_mut(key) {
            Some(Entry::Processing { again, .. }) => return *again = None,
            Some(Entry::Ready { position, .. }) => drop(self.ready.remove(*position)),
            Some(Entry::Due { position }) => drop(self.due.remove(position)),
            None => return,
        }
        self.entries.remove(key);
        release_unused(&mut self.entries);
    }

    /// Makes the keys ready whose time has come.
    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.due.first_entry() {
            let (at, arrival) = *first.key();
            if at > now {
                return;
            }
            let (key, priority) = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                let position = (priority, arrival);
                *entry = Entry::Ready {
                    position,
                    since: at,
                };
                self.ready.insert(position, key);
            }
        }
    }

    /// Returns the most urgent key, the number of this hand-out, and how long it has waited.
    fn take(&mut self, now: Instant) -> Option<(K, u64, Duration)> {
        let taken = if (self.handed_out + 1).is_multiple_of(FAIRNESS) {
            self.ready.take_oldest()
        } else {
            self.ready.take()
        };
        let ((_, number), key) = taken?;
        self.handed_out += 1;
        let entry = Entry::Processing {
            since: now,
            number,
            again: None,
        };
        let waited = match self.entries.insert(key.clone(), entry) {
            Some(Entry::Ready { since, .. }) => now - since,
            _ => Duration::ZERO,
        };
        Some((key, number, waited))
    }
}

#[cfg(test)]
mod tests;
