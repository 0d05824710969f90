//! Instances of objects, and those that events were about since their last description.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use tokio::sync::oneshot;

use crate::rds_events::event::InstanceKey;

/// Object in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Owner {
    /// Returns the key of an object.
    pub(crate) fn of(object: &impl ResourceExt) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
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
    /// Tasks that wait for the end of a reconciliation that has seen a change of the object's instance.
    changes: HashMap<Owner, Vec<oneshot::Sender<()>>>,
}

/// Change of an instance of which the present state is to be described. If that fails, the next reconciliation has to do it.
pub(crate) struct Change {
    changed: ChangedInstances,
    owner: Owner,
    waiting: Vec<oneshot::Sender<()>>,
    is_seen: bool,
}

impl Change {
    /// Records that the state after the change was described. Those who wait for it are notified when the value is dropped.
    pub(crate) fn set_seen(&mut self) {
        self.is_seen = true;
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if self.is_seen {
            for one in waiting {
                // It may have stopped waiting.
                let _ = one.send(());
            }
            return;
        }
        let mut state = self.changed.lock();
        if state.instances.contains_key(&self.owner) {
            let changes = state.changes.entry(self.owner.clone()).or_default();
            changes.extend(waiting);
        }
    }
}

impl ChangedInstances {
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
    }

    /// Records that an object has no instance any more.
    pub(crate) fn remove_owner(&self, owner: &Owner) {
        self.lock().remove(owner);
    }

    /// Records a change of an instance. Returns its objects, which are to be reconciled, each with what ends when that has
    /// happened.
    pub(crate) fn record(&self, instance: &InstanceKey) -> Vec<(Owner, oneshot::Receiver<()>)> {
        let mut state = self.lock();
        let owners = state.owners.get(instance).cloned().unwrap_or_default();
        let recorded = owners.into_iter().map(|owner| {
            let (seen, is_seen) = oneshot::channel();
            let changes = state.changes.entry(owner.clone()).or_default();
            // Those who have stopped waiting do not accumulate.
            changes.retain(|it| !it.is_closed());
            changes.push(seen);
            (owner, is_seen)
        });
        recorded.collect()
    }

    /// Takes the change of an object's instance, if an event was about it since its last description.
    pub(crate) fn take(&self, owner: &Owner) -> Option<Change> {
        let mut state = self.lock();
        let waiting = state.changes.remove(owner)?;
        Some(Change {
            changed: self.clone(),
            owner: owner.clone(),
            waiting,
            is_seen: false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, owner: &Owner) {
        self.changes.remove(owner);
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
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn instance(id: &str) -> InstanceKey {
        InstanceKey {
            account_id: "123456789012".to_owned(),
            region: "eu-central-1".to_owned(),
            id: id.to_owned(),
        }
    }

    fn owner(name: &str) -> Owner {
        Owner {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn all_events_of_an_instance_end_with_one_reconciliation_that_has_seen_it() {
        let changed = ChangedInstances::default();
        assert!(
            changed.record(&instance("a")).is_empty(),
            "no object has it"
        );
        changed.set_owner(&instance("a"), &owner("orders"));
        assert!(changed.take(&owner("orders")).is_none(), "no event");
        let mut waiting = [(); 3].map(|()| {
            let (object, seen) = changed.record(&instance("a")).remove(0);
            assert_eq!(object, owner("orders"));
            seen
        });
        // The description fails.
        drop(changed.take(&owner("orders")).expect("a change"));
        assert!(
            waiting
                .iter_mut()
                .all(|it| it.try_recv() == Err(TryRecvError::Empty))
        );
        let mut change = changed.take(&owner("orders")).expect("a change");
        change.set_seen();
        // An event that arrives during the reconciliation needs another one.
        let (_, mut later) = changed.record(&instance("a")).remove(0);
        drop(change);
        assert!(waiting.iter_mut().all(|it| it.try_recv() == Ok(())));
        assert_eq!(later.try_recv(), Err(TryRecvError::Empty));
        assert!(changed.take(&owner("orders")).is_some());
    }

    #[test]
    fn the_instance_of_a_deleted_object_is_forgotten() {
        let changed = ChangedInstances::default();
        changed.set_owner(&instance("a"), &owner("orders"));
        let (_, mut seen) = changed.record(&instance("a")).remove(0);
        changed.remove_owner(&owner("orders"));
        assert_eq!(seen.try_recv(), Err(TryRecvError::Closed));
        assert!(changed.record(&instance("a")).is_empty());
        // An object of the same name has another instance.
        changed.set_owner(&instance("b"), &owner("orders"));
        changed.set_owner(&instance("c"), &owner("orders"));
        assert!(changed.record(&instance("b")).is_empty());
        assert!(changed.record(&instance("c")).len() == 1);
        let state = changed.lock();
        assert_eq!((state.owners.len(), state.instances.len()), (1, 1));
    }

    #[test]
    fn an_event_concerns_all_objects_that_observe_the_instance() {
        let changed = ChangedInstances::default();
        changed.set_owner(&instance("a"), &owner("orders"));
        changed.set_owner(&instance("a"), &owner("reports"));
        assert_eq!(changed.record(&instance("a")).len(), 2);
        changed.remove_owner(&owner("orders"));
        let left = changed.record(&instance("a"));
        assert_eq!(left[0].0, owner("reports"));
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn those_who_have_stopped_waiting_do_not_accumulate() {
        let changed = ChangedInstances::default();
        changed.set_owner(&instance("a"), &owner("orders"));
        for _ in 0..10 {
            drop(changed.record(&instance("a")));
        }
        assert_eq!(changed.lock().changes[&owner("orders")].len(), 1);
        assert!(
            changed.take(&owner("orders")).is_some(),
            "the change counts"
        );
    }
}
