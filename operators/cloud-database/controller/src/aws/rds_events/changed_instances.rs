//! Instances of objects, and those that events were about since their last description.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::aws::rds_events::event::InstanceKey;

/// Possible difference between the clock of this machine and that of AWS.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of events that are kept for objects that have not been reconciled yet.
const MAX_EARLY: usize = 10_000;

/// Object in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Owner {
    /// Reads the metadata of an object.
    pub(crate) fn from_object(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self {
            namespace: text("namespace").to_owned(),
            name: text("name").to_owned(),
        }
    }
}

/// Instances of the objects that were reconciled here, and their changes. It is shared by its clones.
#[derive(Clone, Default)]
pub(crate) struct ChangedInstances(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Several objects can observe the same instance.
    owners: HashMap<InstanceKey, BTreeSet<Owner>>,
    instances: HashMap<Owner, InstanceKey>,
    changes: HashMap<Owner, Pending>,
    /// Last descriptions because of events.
    described: HashMap<Owner, Described>,
    /// Times of the last events of instances without objects. The object may not have been reconciled yet.
    early: HashMap<InstanceKey, (Instant, Timestamp)>,
}

/// Change that no description has shown yet.
struct Pending {
    /// Time of its last event here. The description must be a later one.
    since: Instant,
    /// The same by the clock.
    time: Timestamp,
    /// Tasks that wait for the end of a reconciliation with the description.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Default for Pending {
    /// Returns a change of this moment.
    fn default() -> Self {
        Self {
            since: Instant::now(),
            time: Timestamp::now(),
            waiting: Vec::new(),
        }
    }
}

/// Description because of events.
#[derive(Clone, Copy)]
struct Described {
    /// Time of its reconciliation.
    at: Instant,
    /// Time before it was requested.
    time: Timestamp,
}

/// Change of an instance of which the present state is to be described. If that fails, the next reconciliation has to do it.
pub(crate) struct Change {
    changed: ChangedInstances,
    owner: Owner,
    pending: Option<Pending>,
    taken: Instant,
    is_seen: bool,
}

impl Change {
    /// Returns the maximum age of a description that shows the change.
    pub(crate) fn max_age(&self) -> Duration {
        let since = self.pending.as_ref().map(|pending| pending.since);
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Records that the state after the change was described. Those who wait for it are notified when the value is dropped.
    pub(crate) fn set_seen(&mut self) {
        self.is_seen = true;
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let mut state = self.changed.lock();
        if !state.instances.contains_key(&self.owner) {
            return;
        }
        if !self.is_seen {
            state.add(self.owner.clone(), pending);
            return;
        }
        let described = Described {
            at: self.taken,
            time: pending.time,
        };
        state.described.insert(self.owner.clone(), described);
        drop(state);
        for one in pending.waiting {
            // It may have stopped waiting.
            let _ = one.send(());
        }
    }
}

impl ChangedInstances {
    /// Forgets everything: another process may have had the lease in the meantime.
    pub(crate) fn clear(&self) {
        *self.lock() = State::default();
    }

    /// Records the instance of an object.
    pub(crate) fn set_owner(&self, instance: &InstanceKey, owner: &Owner) {
        let mut state = self.lock();
        if state.instances.get(owner) == Some(instance) {
            return;
        }
        state.remove(owner);
        let owners = state.owners.entry(instance.clone()).or_default();
        owners.insert(owner.clone());
        state.instances.insert(owner.clone(), instance.clone());
        if let Some(&(since, time)) = state.early.get(instance) {
            let pending = Pending {
                since,
                time,
                waiting: Vec::new(),
            };
            state.add(owner.clone(), pending);
        }
    }

    /// Records that an object has no instance any more.
    pub(crate) fn remove_owner(&self, owner: &Owner) {
        self.lock().remove(owner);
    }

    /// Returns the objects that an event of an instance concerns, with the times from which on they are to be reconciled: an
    /// object is described at most once in an `interval`, because many events are often about one change. Objects that were
    /// described after the `time` of the event have seen its change already.
    pub(crate) fn concerned(
        &self,
        instance: &InstanceKey,
        time: Option<Timestamp>,
        interval: Duration,
    ) -> Vec<(Owner, Instant)> {
        let mut state = self.lock();
        let now = Instant::now();
        let Some(owners) = state.owners.get(instance) else {
            state.record_early(instance.clone());
            return Vec::new();
        };
        let concerned = owners.iter().filter_map(|owner| {
            let described = state.described.get(owner);
            let Some(described) = described else {
                return Some((owner.clone(), now));
            };
            if time.is_some_and(|time| described.time.duration_since(time) > CLOCK_SKEW) {
                return None;
            }
            Some((owner.clone(), now.max(described.at + interval)))
        });
        concerned.collect()
    }

    /// Records a change of an object's instance. The result ends when the object has been reconciled.
    pub(crate) fn record(&self, owner: &Owner) -> oneshot::Receiver<()> {
        let (seen, is_seen) = oneshot::channel();
        let mut state = self.lock();
        if state.instances.contains_key(owner) {
            let pending = Pending {
                waiting: vec![seen],
                ..Pending::default()
            };
            state.add(owner.clone(), pending);
        }
        is_seen
    }

    /// Records that an object was not reconciled in spite of several events, for example because it is paused or does not exist
    /// any more. Its next reconciliation records its instance, and describes it anew.
    pub(crate) fn abandon(&self, owner: &Owner) {
        let mut state = self.lock();
        if let Some(instance) = state.instances.get(owner).cloned() {
            state.remove(owner);
            state.record_early(instance);
        }
    }

    /// Takes the change of an object's instance, if an event was about it since its last description.
    pub(crate) fn take(&self, owner: &Owner) -> Option<Change> {
        let pending = self.lock().changes.remove(owner)?;
        Some(Change {
            changed: self.clone(),
            owner: owner.clone(),
            pending: Some(pending),
            taken: Instant::now(),
            is_seen: false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn record_early(&mut self, instance: InstanceKey) {
        if self.early.len() >= MAX_EARLY {
            self.early.clear();
        }
        self.early
            .insert(instance, (Instant::now(), Timestamp::now()));
    }

    fn add(&mut self, owner: Owner, added: Pending) {
        let all = self.changes.entry(owner).or_insert_with(|| Pending {
            since: added.since,
            time: added.time,
            waiting: Vec::new(),
        });
        all.since = all.since.max(added.since);
        all.time = all.time.max(added.time);
        // Those who have stopped waiting do not accumulate.
        all.waiting.retain(|it| !it.is_closed());
        all.waiting.extend(added.waiting);
    }

    fn remove(&mut self, owner: &Owner) {
        self.changes.remove(owner);
        self.described.remove(owner);
        let Some(instance) = self.instances.remove(owner) else {
            return;
        };
        if let Some(owners) = self.owners.get_mut(&instance) {
            owners.remove(owner);
            if owners.is_empty() {
                self.owners.remove(&instance);
            }
        }
    }
}

#[cfg(test)]
mod tests;
