//! Event sources of a controller: its objects, their children and related objects.

use std::collections::{BTreeSet, HashMap};
use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::api::reconciler::Reconciler;
use crate::cache::object_key::ObjectKey;
use crate::cache::reference_index::{ReferenceIndex, targets};
use crate::cache::related::RelatedCache;
use crate::cache::store::Store;
use crate::children::CONTROLLER_LABEL;
use crate::children::orphans::OrphanCollector;
use crate::controller::context::Context;
use crate::predicate::{UpdateEvent, generation_or_finalizers_changed};
use crate::protection::in_use::InUseProtection;
use crate::queue::priority_queue::{Priority, Queue};
use crate::status::paused;
use crate::watch::event_stream;
use crate::watch::event_stream::{ObjectChange, WatchEvent};

/// Caches that the watches fill.
pub(crate) struct Stores {
    pub(crate) parents: Store,
    pub(crate) related: Vec<RelatedCache>,
}

impl Stores {
    pub(crate) fn of<R>(context: &Context<R>) -> Self {
        let parents = Store::default();
        let related = context.watches.iter().map(|watch| {
            if watch.watches_all_of(&context.resource) {
                RelatedCache::of(&parents)
            } else {
                RelatedCache::default()
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
    context: &'a Context<R>,
    stores: &'a Stores,
    queue: &'a Queue<ObjectKey>,
    /// Keys of the objects by UID.
    keys: Mutex<HashMap<String, ObjectKey>>,
    referrers: Arc<ReferenceIndex<ObjectKey>>,
    /// One for each protected type.
    protections: Vec<InUseProtection<'a, R>>,
    /// Number of watches whose initial list is not complete.
    incomplete: watch::Sender<usize>,
}

impl<'a, R: Reconciler> Sources<'a, R> {
    pub(crate) fn new(
        context: &'a Context<R>,
        stores: &'a Stores,
        queue: &'a Queue<ObjectKey>,
    ) -> Self {
        let related = context.watches.iter();
        let related = related.filter(|watch| !watch.watches_all_of(&context.resource));
        let watches = 1 + context.owned_types.len() + related.count();
        let referrers = Arc::new(ReferenceIndex::default());
        Self {
            context,
            stores,
            queue,
            keys: Mutex::default(),
            protections: InUseProtection::all(context, &stores.related, &referrers),
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
        let all: FuturesUnordered<_> = protections.map(|it| it.work(self.complete())).collect();
        all.collect::<()>().await;
    }

    /// Deletes orphaned children, once all caches are filled, for as long as it is polled.
    pub(crate) async fn collect_orphans(&self) {
        let bereaved = OrphanCollector {
            context: self.context,
            owners: &self.keys,
        };
        let mut complete = self.complete();
        // An error means that the sender is gone.
        if complete.wait_for(|watches| *watches == 0).await.is_ok() {
            bereaved.run().await;
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
    pub(crate) async fn run(&self) {
        let parents = self.parents(&self.stores.parents).boxed();
        let children =
            (0..self.context.owned_types.len()).map(|type_| self.children(type_).boxed());
        let related = (0..self.context.watches.len()).filter(|at| !self.is_on_parents(*at));
        let related = related.map(|at| self.related(at).boxed());
        let all: FuturesUnordered<_> = once(parents).chain(children).chain(related).collect();
        all.collect::<()>().await;
    }

    /// Watches the reconciled objects.
    async fn parents(&self, store: &Store) {
        let resource = &self.context.resource;
        let config = watcher::Config::default();
        let events = self.events(resource, &config, false);
        let told = self.event_handler(resource, |seen| self.on_event(seen), || {});
        event_stream::run(events, store, told).await;
    }

    /// Watches their children of one type.
    async fn children(&self, type_: usize) {
        let resource = self.context.owned_types[type_].api_resource();
        let ours = format!("{CONTROLLER_LABEL}={}", self.context.controller);
        let config = watcher::Config::default().labels(&ours);
        let events = self.events(resource, &config, false);
        let store = Store::with_dictionary(self.context.children.dictionary(type_));
        let told = self.event_handler(
            resource,
            |seen| self.on_child_event(type_, seen),
            || self.context.children.initialize(type_, &store.all()),
        );
        let keep = |child: &DynamicObject| {
            // A child that a reconciliation has written is not stored a second time.
            let written = self.context.children.get(type_, child);
            written.unwrap_or_else(|| store.compress(child))
        };
        event_stream::run_with_store(events, &store, keep, told).await;
    }

    /// Watches related objects of one type.
    async fn related(&self, at: usize) {
        let watch = &self.context.watches[at];
        let resource = &watch.resource;
        let events = self.events(resource, &watch.config, watch.is_metadata_only);
        let told = self.event_handler(resource, |seen| self.on_related_event(at, seen), || {});
        event_stream::run(events, &self.stores.related[at].store, told).await;
    }

    /// Returns true if a watch delivers the reconciled objects themselves, which are not watched twice.
    fn is_on_parents(&self, at: usize) -> bool {
        self.context.watches[at].watches_all_of(&self.context.resource)
    }

    fn events(
        &self,
        resource: &ApiResource,
        config: &watcher::Config,
        is_metadata_only: bool,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + use<R> {
        let namespace = self.context.namespace.as_deref();
        event_stream::events(
            &self.context.client,
            resource,
            namespace,
            config,
            is_metadata_only,
        )
    }

    /// Returns the part of the event handler that is the same for every watch.
    fn event_handler(
        &self,
        resource: &ApiResource,
        saw: impl Fn(&ObjectChange<'_>),
        complete: impl Fn(),
    ) -> impl FnMut(WatchEvent<'_>) {
        let name = event_stream::name(resource);
        let state = self.context.metrics.watch(&self.context.name, &name);
        let mut is_complete = false;
        move |news| match news {
            WatchEvent::Changed(seen) => {
                state.set_up();
                saw(&seen);
            }
            WatchEvent::Initialized => {
                state.set_up();
                complete();
                if !std::mem::replace(&mut is_complete, true) {
                    self.incomplete.send_modify(|watches| *watches -= 1);
                }
            }
            WatchEvent::Failed(error) => {
                let reason = event_stream::reason(error, resource);
                let controller = &self.context.name;
                tracing::warn!(%error, controller, resource = resource.plural, "the watch {reason}; retrying");
                state.set_down(reason);
            }
        }
    }

    /// Handles a change of a reconciled object: enqueues it if the change needs a reconciliation.
    fn on_event(&self, seen: &ObjectChange<'_>) {
        let UpdateEvent { before, after } = seen.change;
        if let Some(before) = before
            && after.is_none_or(|after| after.metadata.uid != before.metadata.uid)
        {
            self.context
                .forget(before.metadata.uid.as_deref().unwrap_or_default());
        }
        if let Some(after) = after {
            self.context
                .pending_writes
                .resolve_and_prune(Arc::clone(after));
        }
        self.update_indexes(&seen.change);
        for at in (0..self.context.watches.len()).filter(|at| self.is_on_parents(*at)) {
            self.on_related_event(at, seen);
        }
        // Ignores our own status writes.
        let is_worth_a_round =
            generation_or_finalizers_changed(&seen.change) || paused::pause_changed(&seen.change);
        let Some(object) = after.or(before).filter(|_| is_worth_a_round) else {
            return;
        };
        let key = ObjectKey::of(object);
        if after.is_none() {
            return self.queue.remove(&key);
        }
        self.queue.add(key, priority(seen), Duration::ZERO);
    }

    /// Handles a change of a related object: enqueues each object that refers to it.
    fn on_related_event(&self, at: usize, seen: &ObjectChange<'_>) {
        let watch = &self.context.watches[at];
        let retold = self.stores.related[at].on_change(watch, &seen.change);
        if let Some(protection) = self.protection(at) {
            protection.on_event(&seen.change);
        }
        if watch.passes_filter(&seen.change) {
            for key in self.referrers.referrers_of(at, &seen.change, retold) {
                self.queue.add(key, priority(seen), Duration::ZERO);
            }
        }
    }

    /// Updates the key and the references of an object.
    fn update_indexes(&self, change: &UpdateEvent<'_, DynamicObject>) {
        let mut keys = self.keys.lock();
        if let Some(uid) = change.before.and_then(|before| before.uid()) {
            keys.remove(&uid);
        }
        if let Some(after) = change.after
            && let Some(uid) = after.uid()
        {
            keys.insert(uid, ObjectKey::of(after));
        }
        drop(keys);
        let Some(object) = change.after.or(change.before) else {
            return;
        };
        if self.context.watches.is_empty() {
            return;
        }
        let key = ObjectKey::of(object);
        let now = match change.after {
            Some(after) if !self.is_processed(after) => {
                let namespace = after.namespace().unwrap_or_default();
                let value = serde_json::to_value(&**after).unwrap_or_default();
                targets(&self.context.watches, &namespace, &value)
            }
            _ => Some(BTreeSet::new()),
        };
        let Some(now) = now else {
            return self.referrers.set_unknown(&key);
        };
        let were_unclear = self.referrers.has_unknown();
        for target in self.referrers.set(&key, now) {
            if let Some(protection) = self.protection(target.watch) {
                protection.on_reference_changed(&target.namespace, &target.reference);
            }
        }
        if were_unclear && !self.referrers.has_unknown() {
            self.protections
                .iter()
                .for_each(InUseProtection::enqueue_all);
        }
    }

    /// Returns true if an object is being deleted and only other controllers have something left to do for it.
    fn is_processed(&self, object: &DynamicObject) -> bool {
        let finalizer = self.context.finalizer.as_ref();
        object.metadata.deletion_timestamp.is_some()
            && finalizer.is_none_or(|finalizer| !object.finalizers().contains(finalizer))
    }

    /// Returns the protection of a watch's objects, if they are protected.
    fn protection(&self, at: usize) -> Option<&InUseProtection<'a, R>> {
        self.protections.iter().find(|it| it.is_on_watch(at))
    }

    /// Handles a change of a child: enqueues its owner.
    fn on_child_event(&self, type_: usize, seen: &ObjectChange<'_>) {
        let owners = self.context.children.on_change(type_, seen);
        let keys = self.keys.lock();
        // An owner that is not known yet is enqueued when it arrives.
        for key in owners.iter().filter_map(|owner| keys.get(owner)) {
            self.queue.add(key.clone(), priority(seen), Duration::ZERO);
        }
    }
}

/// Returns the priority of an event: a change goes before the objects of the initial list.
fn priority(seen: &ObjectChange<'_>) -> Priority {
    if seen.is_new {
        Priority::Event
    } else {
        Priority::Initial
    }
}
