//! Handler of watch events: updates caches and indexes, and enqueues the affected objects.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject};
use kube::{Client, ResourceExt};
use lockstep_watch::WatchState;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::yield_now;

use crate::api::reconciler::Reconciler;
use crate::cache::capacity::release_unused;
use crate::cache::object_key::ObjectKey;
use crate::cache::reference_index::{ReferenceIndex, targets};
use crate::children::OWNER_LABEL;
use crate::children::owner::label;
use crate::controller::context::Context;
use crate::dynamic_object::to_value;
use crate::predicate::{UpdateEvent, generation_or_finalizers_changed};
use crate::protection::in_use::InUseProtection;
use crate::queue::change_limits::ChangeLimits;
use crate::queue::priority_queue::Queue;
use crate::queue::ready_keys::Priority;
use crate::sharding::scope::ShardScope;
use crate::status::{paused, reconcile_request};
use crate::watch::event_stream;
use crate::watch::event_stream::{ObjectChange, WatchEvent};
use crate::watch::namespace_watches::NamespacesOfType;
use crate::watch::stores::Stores;

/// Objects that a watch delivers.
#[derive(Clone, Copy)]
pub(crate) enum Watched {
    /// The reconciled objects.
    Parents,
    /// Their children of the type with this index.
    Children(usize),
    /// Related objects of the operator's watch with this index.
    Related(usize),
}

/// State of one watch.
pub(crate) struct Watching<'a> {
    objects: Watched,
    resource: &'a ApiResource,
    connection: WatchState,
    /// Namespace to which the watch is limited because an owner has children in it.
    namespace: Option<String>,
    /// If true, the initial list is complete, or nothing waits for it.
    is_complete: bool,
}

impl Watching<'_> {
    /// Returns the client for the requests of this watch.
    pub(crate) fn client(&self, client: &Client) -> Client {
        self.connection.client(client)
    }
}

/// Handler of the events of all watches of a controller.
pub(crate) struct EventHandler<'a, R> {
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
    limits: ChangeLimits,
}

impl<'a, R: Reconciler> EventHandler<'a, R> {
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
            limits: ChangeLimits::default(),
        }
    }

    /// Returns the state of a watch that is about to start.
    pub(crate) fn watch(&self, objects: Watched, resource: &'a ApiResource) -> Watching<'a> {
        let name = event_stream::name(resource);
        Watching {
            objects,
            resource,
            connection: self.context.metrics.watch(&self.context.name, &name),
            namespace: None,
            is_complete: false,
        }
    }

    /// Returns the state of a watch on the children of a type in one namespace.
    pub(crate) fn watch_namespace(&self, type_: usize, namespace: &str) -> Watching<'a> {
        let resource = self.context.owned_types[type_].api_resource();
        Watching {
            namespace: Some(namespace.to_owned()),
            is_complete: true,
            ..self.watch(Watched::Children(type_), resource)
        }
    }

    /// Records that the initial list of a watch is complete.
    pub(crate) fn complete_watch(&self) {
        self.incomplete.send_modify(|watches| *watches -= 1);
    }

    /// Handles an event of a watch.
    pub(crate) fn handle(&self, watch: &mut Watching<'_>, event: WatchEvent<'_>) {
        match event {
            WatchEvent::Changed(seen) => {
                watch.connection.set_up();
                match watch.objects {
                    Watched::Parents => self.on_event(&seen),
                    Watched::Children(type_) => self.on_child_event(type_, &seen),
                    Watched::Related(at) => self.on_related_event(at, &seen),
                }
            }
            WatchEvent::Initialized => {
                watch.connection.set_up();
                let namespace = watch.namespace.as_deref();
                match watch.objects {
                    Watched::Parents => self.context.namespace_watches.set_owners_listed(),
                    Watched::Children(type_) => {
                        let store = &self.stores.children[type_];
                        let all = namespace
                            .map_or_else(|| store.all(), |within| store.in_namespace(within));
                        let children = &self.context.written.children;
                        children.initialize(type_, namespace, &all);
                    }
                    Watched::Related(_) => {}
                }
                self.on_namespace(watch, NamespacesOfType::set_listed);
                if !std::mem::replace(&mut watch.is_complete, true) {
                    self.complete_watch();
                }
            }
            WatchEvent::Failed(error) => {
                let reason = event_stream::reason(error, watch.resource);
                let controller = &self.context.name;
                let resource = &watch.resource.plural;
                let namespace = watch.namespace.as_ref();
                tracing::warn!(%error, controller, resource, namespace, "the watch {reason}; retrying");
                self.on_namespace(watch, |namespaces, name| {
                    namespaces.set_failed(name, reason.clone())
                });
                let within = event_stream::within(watch.namespace.as_deref());
                watch.connection.set_down(within + &reason);
            }
        }
    }

    /// Records the list or the failure of a watch that is limited to a namespace, and enqueues the owners that it concerns.
    fn on_namespace(
        &self,
        watch: &Watching<'_>,
        record: impl FnOnce(&NamespacesOfType, &str) -> Vec<ObjectKey>,
    ) {
        let (Watched::Children(type_), Some(namespace)) = (watch.objects, &watch.namespace) else {
            return;
        };
        let Some(namespaces) = self.context.namespace_watches.of_type(type_) else {
            return;
        };
        self.enqueue(record(namespaces, namespace));
    }

    /// Enqueues objects that something else than an event of their own concerns.
    pub(crate) fn enqueue(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            self.queue.add(key, Priority::Event, Duration::ZERO);
        }
    }

    /// Enqueues the readers of objects that have changed, each with the namespace of such an object.
    pub(crate) fn enqueue_readers(&self, readers: impl IntoIterator<Item = (ObjectKey, String)>) {
        for (reader, namespace) in readers {
            self.enqueue_for(reader, Priority::Event, &namespace);
        }
    }

    /// Enqueues an object of which another one in a namespace has changed.
    fn enqueue_for(&self, key: ObjectKey, priority: Priority, namespace: &str) {
        let delay = self.limits.delay(&key, namespace);
        self.queue.add(key, priority, delay);
    }

    /// Returns the number of watches whose initial list is not complete.
    pub(crate) fn incomplete(&self) -> watch::Receiver<usize> {
        self.incomplete.subscribe()
    }

    pub(crate) fn protections(&self) -> &[InUseProtection<'a, R>] {
        &self.protections
    }

    /// Returns the keys of the objects by UID.
    pub(crate) fn keys(&self) -> &Mutex<HashMap<String, ObjectKey>> {
        &self.keys
    }

    /// Closes all queues.
    pub(crate) fn close(&self) {
        self.queue.close();
        for protection in &self.protections {
            protection.close();
        }
    }

    /// Returns true if a watch delivers the reconciled objects themselves, which are not watched twice.
    pub(crate) fn is_on_parents(&self, at: usize) -> bool {
        self.context.watches[at].watches_all_of(&self.context.resource)
    }

    /// Returns true if an object is kept in the cache: this replica holds its shard, or the objects of all shards are needed to
    /// see which of them refer to a related object.
    pub(crate) fn keeps(&self, object: &DynamicObject) -> bool {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        self.keeps_uid(uid)
    }

    /// Returns true if a child is kept in the cache: this replica holds the shard of its owner.
    pub(crate) fn keeps_child(&self, child: &DynamicObject) -> bool {
        let shards = self.context.shards.as_ref();
        shards.is_none_or(|shards| {
            label(child, OWNER_LABEL).is_some_and(|owner| shards.shards().holds(owner))
        })
    }

    fn keeps_uid(&self, uid: &str) -> bool {
        let shards = self.context.shards.as_ref();
        shards.is_none_or(|shards| shards.shards().holds(uid)) || self.needs_all_parents()
    }

    fn needs_all_parents(&self) -> bool {
        let mut watches = 0..self.context.watches.len();
        !self.protections.is_empty() || watches.any(|at| self.is_on_parents(at))
    }

    /// Enqueues the objects of the shards with these acquisitions: all watches have listed them. They do not wait behind
    /// the objects of the other shards: another replica has reconciled them until now.
    pub(crate) fn enqueue_acquired(&self, shards: &ShardScope, acquisitions: RangeInclusive<u64>) {
        for (key, stored) in self.stores.parents.entries() {
            let acquisition = shards.shards().acquisition_of(stored.uid());
            if acquisition.is_some_and(|it| acquisitions.contains(&it)) {
                self.queue.add(key, Priority::Requeue, Duration::ZERO);
            }
        }
        for protection in &self.protections {
            protection.enqueue_all();
        }
    }

    /// Removes the objects of shards that this replica no longer holds, and their children, from all caches.
    pub(crate) async fn remove_released(&self, shards: &ShardScope) {
        let is_held = |uid: &str| shards.shards().holds(uid);
        let children = self.context.written.children.retain_owners(is_held);
        for child in children {
            self.stores.children[child.type_index].remove(&child.object);
        }
        for (key, stored) in self.stores.parents.entries() {
            // Another object of the same name may have replaced it meanwhile.
            let current = self.stores.parents.get(&key);
            let is_current = current.is_some_and(|current| current.uid() == stored.uid());
            if is_held(stored.uid()) || !is_current {
                continue;
            }
            if self.keeps_uid(stored.uid()) {
                self.context.forget(stored.uid());
                self.queue.remove(&key);
            } else if let Some(removed) = self.stores.parents.remove(&key) {
                let before = Arc::new(removed.decompress());
                self.on_event(&ObjectChange::of(Some(&before), None, None, true));
                // There may be thousands of them, and the Leases are renewed in between.
                yield_now().await;
            }
        }
        self.release_memory();
    }

    /// Releases the memory of the collections for the objects that were removed.
    fn release_memory(&self) {
        self.stores.parents.shrink_to_fit();
        self.stores
            .children
            .iter()
            .for_each(|store| store.shrink_to_fit());
        self.queue.shrink_to_fit();
        self.keys.lock().shrink_to_fit();
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
                .written
                .objects
                .resolve_and_prune(Arc::clone(after));
        }
        let Some(object) = after.or(before) else {
            return;
        };
        let key = ObjectKey::of(object);
        self.update_namespaces(&key, &seen.change);
        self.update_indexes(&key, &seen.change);
        for at in (0..self.context.watches.len()).filter(|at| self.is_on_parents(*at)) {
            self.on_related_event(at, seen);
        }
        // Ignores our own status writes.
        let triggers_reconciliation = generation_or_finalizers_changed(&seen.change)
            || paused::pause_changed(&seen.change)
            || reconcile_request::is_requested(&seen.change);
        if !triggers_reconciliation {
            return;
        }
        if after.is_none() {
            self.context.read_objects.set(&key, &[]);
            return self.queue.remove(&key);
        }
        self.queue.add(key, priority(seen), Duration::ZERO);
    }

    /// Handles a change of a related object: enqueues each object that refers to it.
    fn on_related_event(&self, at: usize, seen: &ObjectChange<'_>) {
        let watch = &self.context.watches[at];
        let changed_keys = self.stores.related[at].on_change(watch, &seen.change);
        if let Some(protection) = self.protection(at) {
            protection.on_event(&seen.change);
        }
        if watch.passes_filter(&seen.change) {
            let changed = seen.change.after.or(seen.change.before);
            let namespace = changed.and_then(|changed| changed.namespace());
            for key in self.referrers.referrers_of(at, &seen.change, changed_keys) {
                // The objects of a start come all at once.
                let namespace = namespace.as_deref().filter(|_| seen.is_new);
                self.enqueue_for(key, priority(seen), namespace.unwrap_or_default());
            }
        }
    }

    /// Updates the namespaces in which an object has children.
    fn update_namespaces(&self, key: &ObjectKey, change: &UpdateEvent<'_, DynamicObject>) {
        let watches = &self.context.namespace_watches;
        if watches.is_any() {
            let after = change.after.map(|after| to_value(after));
            let after = after.transpose().ok().flatten().unwrap_or_default();
            watches.set_owner(key, &after);
        }
    }

    /// Updates the key and the references of an object.
    fn update_indexes(&self, key: &ObjectKey, change: &UpdateEvent<'_, DynamicObject>) {
        let mut keys = self.keys.lock();
        let uid = |object: Option<&Arc<DynamicObject>>| object.and_then(|object| object.uid());
        let (before, after) = (uid(change.before), uid(change.after));
        if let Some(before) = before.filter(|before| after.as_ref() != Some(before)) {
            keys.remove(&before);
            release_unused(&mut keys);
        }
        if let Some(after) = after {
            keys.entry(after).or_insert_with(|| key.clone());
        }
        drop(keys);
        if self.context.watches.is_empty() {
            return;
        }
        let now = match change.after {
            Some(after) if !self.is_processed(after) => {
                let namespace = after.namespace().unwrap_or_default();
                let value = to_value(after).unwrap_or_default();
                targets(&self.context.watches, &namespace, &value)
            }
            _ => Some(BTreeSet::new()),
        };
        let Some(now) = now else {
            return self.referrers.set_unknown(key);
        };
        let were_unclear = self.referrers.has_unknown();
        for target in self.referrers.set(key, now) {
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
        let owners = self.context.written.children.on_change(type_, seen);
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
