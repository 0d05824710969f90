//! Event sources of a controller: its objects, their children and related objects.

use std::collections::{BTreeSet, HashMap};
use std::iter::once;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use tokio::sync::watch;

use crate::bereaved::Bereaved;
use crate::children::CONTROLLER_LABEL;
use crate::cycle::Cycle;
use crate::kept::{Key, Store, key_of};
use crate::pause;
use crate::predicate::{Change, generation_or_finalizers};
use crate::protection::Protection;
use crate::queue::{Priority, Queue};
use crate::reconcile::Reconcile;
use crate::referrers::{Referrers, targets};
use crate::related::Watched;
use crate::together::together;
use crate::watches::{self, Seen, Told};

/// Caches that the watches fill.
pub(crate) struct Stores {
    pub(crate) parents: Store,
    pub(crate) related: Vec<Watched>,
}

impl Stores {
    pub(crate) fn of<R>(cycle: &Cycle<R>) -> Self {
        let parents = Store::default();
        let related = cycle.watches.iter().map(|watch| {
            if watch.is_on_all_of(&cycle.resource) {
                Watched::of(&parents)
            } else {
                Watched::default()
            }
        });
        Self {
            related: related.collect(),
            parents,
        }
    }
}

/// Watches of a controller, and the handlers of their events.
pub(crate) struct Sources<'a, R> {
    cycle: &'a Cycle<R>,
    stores: &'a Stores,
    queue: &'a Queue<Key>,
    /// Keys of the objects by UID.
    keys: Mutex<HashMap<String, Key>>,
    referrers: Arc<Referrers<Key>>,
    /// One for each protected type.
    protections: Vec<Protection<'a, R>>,
    /// Number of watches whose initial list is not complete.
    incomplete: watch::Sender<usize>,
}

impl<'a, R: Reconcile> Sources<'a, R> {
    pub(crate) fn new(cycle: &'a Cycle<R>, stores: &'a Stores, queue: &'a Queue<Key>) -> Self {
        let related = cycle.watches.iter();
        let related = related.filter(|watch| !watch.is_on_all_of(&cycle.resource));
        let watches = 1 + cycle.child_types.len() + related.count();
        let referrers = Arc::new(Referrers::default());
        Self {
            cycle,
            stores,
            queue,
            keys: Mutex::default(),
            protections: Protection::all(cycle, &stores.related, &referrers),
            referrers,
            incomplete: watch::channel(watches).0,
        }
    }

    /// Returns a channel that becomes zero once all caches are filled. Before that, a missing object may merely
    /// not have arrived yet.
    pub(crate) fn complete(&self) -> watch::Receiver<usize> {
        self.incomplete.subscribe()
    }

    /// Protects related objects until it is closed.
    pub(crate) async fn protect(&self) {
        let protections = self.protections.iter();
        together(protections.map(|it| it.work(self.complete()).boxed())).await;
    }

    /// Deletes orphaned children, once all caches are filled, for as long as it is polled.
    pub(crate) async fn bury(&self) {
        let bereaved = Bereaved {
            cycle: self.cycle,
            owners: &self.keys,
        };
        let mut complete = self.complete();
        // An error means that the sender is gone.
        if complete.wait_for(|watches| *watches == 0).await.is_ok() {
            bereaved.delete().await;
        }
    }

    /// Closes all queues.
    pub(crate) fn close(&self) {
        self.queue.close();
        for protection in &self.protections {
            protection.close();
        }
    }

    /// Runs all watches. A watch that fails does not affect the others.
    pub(crate) async fn follow(&self) {
        let parents = self.parents(&self.stores.parents).boxed();
        let children = (0..self.cycle.child_types.len()).map(|type_| self.children(type_).boxed());
        let related = (0..self.cycle.watches.len()).filter(|at| !self.is_on_parents(*at));
        let related = related.map(|at| self.related(at).boxed());
        together(once(parents).chain(children).chain(related)).await;
    }

    /// Watches the reconciled objects.
    async fn parents(&self, store: &Store) {
        let resource = &self.cycle.resource;
        let config = watcher::Config::default();
        let events = self.events(resource, &config, false);
        let told = self.told(resource, |seen| self.saw(seen), || {});
        watches::follow(events, store, told).await;
    }

    /// Watches their children of one type.
    async fn children(&self, type_: usize) {
        let resource = self.cycle.child_types[type_].resource();
        let ours = format!("{CONTROLLER_LABEL}={}", self.cycle.controller);
        let config = watcher::Config::default().labels(&ours);
        let events = self.events(resource, &config, false);
        let store = Store::like(self.cycle.children.pattern(type_));
        let told = self.told(
            resource,
            |seen| self.saw_child(type_, seen),
            || self.cycle.children.began(type_, &store.all()),
        );
        let keep = |child: &DynamicObject| {
            // A child that a reconciliation has written is not stored a second time.
            let written = self.cycle.children.kept(type_, child);
            written.unwrap_or_else(|| store.keep(child))
        };
        watches::follow_keeping(events, &store, keep, told).await;
    }

    /// Watches related objects of one type.
    async fn related(&self, at: usize) {
        let watch = &self.cycle.watches[at];
        let resource = &watch.resource;
        let events = self.events(resource, &watch.config, watch.is_metadata_only);
        let told = self.told(resource, |seen| self.saw_related(at, seen), || {});
        watches::follow(events, &self.stores.related[at].store, told).await;
    }

    /// Returns true if a watch delivers the reconciled objects themselves, which are not watched twice.
    fn is_on_parents(&self, at: usize) -> bool {
        self.cycle.watches[at].is_on_all_of(&self.cycle.resource)
    }

    fn events(
        &self,
        resource: &ApiResource,
        config: &watcher::Config,
        is_metadata_only: bool,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + use<R> {
        let namespace = self.cycle.within.as_deref();
        watches::events(
            &self.cycle.client,
            resource,
            namespace,
            config,
            is_metadata_only,
        )
    }

    /// Returns the part of the event handler that is the same for every watch.
    fn told(
        &self,
        resource: &ApiResource,
        saw: impl Fn(&Seen<'_>),
        complete: impl Fn(),
    ) -> impl FnMut(Told<'_>) {
        let name = watches::name(resource);
        let state = self.cycle.metrics.watch(&self.cycle.name, &name);
        let mut is_complete = false;
        move |news| match news {
            Told::Seen(seen) => {
                state.is_up();
                saw(&seen);
            }
            Told::Complete => {
                state.is_up();
                complete();
                if !std::mem::replace(&mut is_complete, true) {
                    self.incomplete.send_modify(|watches| *watches -= 1);
                }
            }
            Told::Failed(error) => {
                let reason = watches::reason(error, resource);
                let controller = &self.cycle.name;
                tracing::warn!(%error, controller, resource = resource.plural, "the watch {reason}; retrying");
                state.is_down(reason);
            }
        }
    }

    /// Handles a change of a reconciled object: enqueues it if the change needs a reconciliation.
    fn saw(&self, seen: &Seen<'_>) {
        let Change { before, after } = seen.change;
        if let Some(before) = before
            && after.is_none_or(|after| after.metadata.uid != before.metadata.uid)
        {
            self.cycle
                .forget(before.metadata.uid.as_deref().unwrap_or_default());
        }
        if let Some(after) = after {
            self.cycle.written.or_later(Arc::clone(after));
        }
        self.note(&seen.change);
        for at in (0..self.cycle.watches.len()).filter(|at| self.is_on_parents(*at)) {
            self.saw_related(at, seen);
        }
        // Ignores our own status writes.
        let is_worth_a_round =
            generation_or_finalizers(&seen.change) || pause::begins_or_ends(&seen.change);
        let Some(object) = after.or(before).filter(|_| is_worth_a_round) else {
            return;
        };
        let key = key_of(object);
        if after.is_none() {
            return self.queue.remove(&key);
        }
        self.queue.add(key, priority(seen), Duration::ZERO);
    }

    /// Handles a change of a related object: enqueues each object that refers to it.
    fn saw_related(&self, at: usize, seen: &Seen<'_>) {
        let watch = &self.cycle.watches[at];
        let retold = self.stores.related[at].saw(watch, &seen.change);
        if let Some(protection) = self.protection(at) {
            protection.saw(&seen.change);
        }
        if watch.is_worth_a_round(&seen.change) {
            for key in self.referrers.of(at, &seen.change, retold) {
                self.queue.add(key, priority(seen), Duration::ZERO);
            }
        }
    }

    /// Updates the key and the references of an object.
    fn note(&self, change: &Change<'_, DynamicObject>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = change.before.and_then(|before| before.uid()) {
            keys.remove(&uid);
        }
        if let Some(after) = change.after
            && let Some(uid) = after.uid()
        {
            keys.insert(uid, key_of(after));
        }
        drop(keys);
        let Some(object) = change.after.or(change.before) else {
            return;
        };
        if self.cycle.watches.is_empty() {
            return;
        }
        let key = key_of(object);
        let now = match change.after {
            Some(after) if !self.is_done_with(after) => {
                let namespace = after.namespace().unwrap_or_default();
                let value = serde_json::to_value(&**after).unwrap_or_default();
                targets(&self.cycle.watches, &namespace, &value)
            }
            _ => Some(BTreeSet::new()),
        };
        let Some(now) = now else {
            return self.referrers.set_unclear(&key);
        };
        let were_unclear = self.referrers.are_unclear();
        for (at, namespace, reference) in self.referrers.set(&key, now) {
            if let Some(protection) = self.protection(at) {
                protection.is_touched(&namespace, &reference);
            }
        }
        if were_unclear && !self.referrers.are_unclear() {
            self.protections.iter().for_each(Protection::look_again);
        }
    }

    /// Returns true if an object is being deleted and only other controllers have something left to do for it.
    fn is_done_with(&self, object: &DynamicObject) -> bool {
        let finalizer = self.cycle.finalizer.as_ref();
        object.metadata.deletion_timestamp.is_some()
            && finalizer.is_none_or(|finalizer| !object.finalizers().contains(finalizer))
    }

    /// Returns the protection of a watch's objects, if they are protected.
    fn protection(&self, at: usize) -> Option<&Protection<'a, R>> {
        self.protections.iter().find(|it| it.is_about(at))
    }

    /// Handles a change of a child: enqueues its owner.
    fn saw_child(&self, type_: usize, seen: &Seen<'_>) {
        let owners = self.cycle.children.saw(type_, seen);
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // An owner that is not known yet is enqueued when it arrives.
        for key in owners.iter().filter_map(|owner| keys.get(owner)) {
            self.queue.add(key.clone(), priority(seen), Duration::ZERO);
        }
    }
}

/// Returns the priority of an event: a change goes before the objects of the initial list.
fn priority(seen: &Seen<'_>) -> Priority {
    if seen.is_news {
        Priority::Change
    } else {
        Priority::Start
    }
}
