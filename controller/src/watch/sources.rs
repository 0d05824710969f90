//! Event sources of a controller: its objects, their children and related objects.

use std::collections::BTreeSet;
use std::future::pending;
use std::iter::once;
use std::pin::pin;
use std::sync::Arc;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use kube::Client;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use tokio::sync::{Notify, watch};

use crate::api::reconciler::Reconciler;
use crate::cache::object_key::ObjectKey;
use crate::cache::store::CompressedObject;
use crate::children::CONTROLLER_LABEL;
use crate::children::orphans::OrphanCollector;
use crate::controller::context::Context;
use crate::queue::priority_queue::Queue;
use crate::sharding::scope::ShardedWatch;
use crate::watch::event_stream;
use crate::watch::event_stream::{Fields, WatchEvent};
use crate::watch::handler::{EventHandler, Watched, Watching};
use crate::watch::intake;
use crate::watch::intake::Intake;
use crate::watch::namespace_watches::NamespacesOfType;
use crate::watch::read_watches;
use crate::watch::stores::Stores;

/// Watches of a controller.
pub(crate) struct Sources<'a, R> {
    context: &'a Context<R>,
    stores: &'a Stores,
    handler: EventHandler<'a, R>,
}

impl<'a, R: Reconciler> Sources<'a, R> {
    pub(crate) fn new(
        context: &'a Context<R>,
        stores: &'a Stores,
        queue: &'a Queue<ObjectKey>,
    ) -> Self {
        if let Some(shards) = &context.shards {
            shards.start_watch(ShardedWatch::Parents);
            let types = 0..context.owned_types.len();
            for type_ in types.filter(|at| context.namespace_watches.of_type(*at).is_none()) {
                shards.start_watch(ShardedWatch::Children(type_));
            }
        }
        Self {
            context,
            stores,
            handler: EventHandler::new(context, stores, queue),
        }
    }

    /// Returns a channel that becomes zero once all caches are filled. Before that, a missing object may merely
    /// not have arrived yet.
    pub(crate) fn complete(&self) -> watch::Receiver<usize> {
        self.handler.incomplete()
    }

    /// Protects related objects until it is closed.
    pub(crate) async fn protect(&self) {
        let protections = self.handler.protections().iter();
        let all: FuturesUnordered<_> = protections.map(|it| it.work(self.complete())).collect();
        all.collect::<()>().await;
    }

    /// Deletes orphaned children, once all caches are filled, for as long as it is polled.
    pub(crate) async fn collect_orphans(&self) {
        let orphans = OrphanCollector {
            context: self.context,
            owners: self.handler.keys(),
        };
        let mut complete = self.complete();
        // An error means that the sender is gone.
        if complete.wait_for(|watches| *watches == 0).await.is_ok() {
            orphans.run().await;
        }
    }

    /// Enqueues the objects of acquired shards and removes those of released ones, for as long as it is polled.
    pub(crate) async fn follow_shards(&self) {
        let Some(shards) = &self.context.shards else {
            return pending().await;
        };
        let (mut ready, mut releases) = (shards.ready(), shards.shards().releases());
        let mut enqueued = 0;
        loop {
            tokio::select! {
                // The senders live as long as the controller.
                _ = ready.changed() => {
                    let listed = *ready.borrow_and_update();
                    self.handler.enqueue_acquired(shards, enqueued + 1..=listed);
                    enqueued = listed;
                }
                _ = releases.changed() => self.handler.remove_released(shards).await,
            }
        }
    }

    /// Closes all queues.
    pub(crate) fn close(&self) {
        self.handler.close();
    }

    /// Runs all watches. A watch that fails does not affect the others.
    pub(crate) async fn run(&self) {
        let parents = self.parents().boxed();
        let children =
            (0..self.context.owned_types.len()).map(|type_| self.children(type_).boxed());
        let related = (0..self.context.watches.len()).filter(|at| !self.handler.is_on_parents(*at));
        let related = related.map(|at| self.related(at).boxed());
        let read = read_watches::run(self.context, &self.handler).boxed();
        let all = once(parents).chain(children).chain(related);
        let all: FuturesUnordered<_> = all.chain(once(read)).collect();
        all.collect::<()>().await;
    }

    /// Watches the reconciled objects.
    async fn parents(&self) {
        let resource = &self.context.resource;
        let config = watcher::Config::default();
        let mut watch = self.handler.watch(Watched::Parents, resource);
        let client = watch.client(&self.context.client);
        let begin = || self.events(&client, resource, &config, Fields::Unmanaged);
        let handle = |event: WatchEvent<'_>| self.handler.handle(&mut watch, event);
        let store = &self.stores.parents;
        let intake = Intake {
            store,
            namespace: None,
            compress: |object: &DynamicObject| store.compress(object),
            keeps: |object: &DynamicObject| self.handler.keeps(object),
        };
        self.follow(ShardedWatch::Parents, begin, &intake, handle)
            .await;
    }

    /// Runs a watch. After each acquisition of shards it starts again, to list their objects.
    async fn follow<S, C, K>(
        &self,
        watch: ShardedWatch,
        begin: impl Fn() -> S,
        intake: &Intake<'_, C, K>,
        mut handle: impl FnMut(WatchEvent<'_>),
    ) where
        S: Stream<Item = watcher::Result<Event<DynamicObject>>>,
        C: Fn(&DynamicObject) -> Arc<CompressedObject>,
        K: Fn(&DynamicObject) -> bool,
    {
        let Some(shards) = &self.context.shards else {
            return intake.run(begin(), handle).await;
        };
        let namespace = match &watch {
            ShardedWatch::Parents | ShardedWatch::Children(_) => None,
            ShardedWatch::ChildrenIn(type_, namespace) => Some((*type_, namespace)),
        };
        let mut acquisitions = shards.shards().acquisitions();
        // The sender lives as long as the controller. Before the first acquisition there is nothing to list.
        let _ = acquisitions.wait_for(|acquisition| *acquisition > 0).await;
        loop {
            let acquisition = *acquisitions.borrow_and_update();
            let handle = |event: WatchEvent<'_>| {
                let is_listed = match event {
                    WatchEvent::Initialized => true,
                    // The owners of the children in the namespace report it.
                    WatchEvent::Failed(_) => namespace.is_some(),
                    WatchEvent::Changed(_) => false,
                };
                handle(event);
                if is_listed {
                    shards.set_listed(&watch, acquisition);
                }
            };
            tokio::select! {
                () = intake.run(begin(), handle) => return,
                _ = acquisitions.changed() => {}
            }
            // The children of the acquired objects in this namespace are not known until they are listed.
            if let Some((type_, namespace)) = namespace
                && let Some(namespaces) = self.context.namespace_watches.of_type(type_)
            {
                namespaces.set_ended(namespace);
            }
        }
    }

    /// Watches their children of one type.
    async fn children(&self, type_: usize) {
        match self.context.namespace_watches.of_type(type_) {
            Some(namespaces) => self.children_by_namespace(type_, namespaces).await,
            None => {
                let resource = self.context.owned_types[type_].api_resource();
                let watch = self.handler.watch(Watched::Children(type_), resource);
                let namespace = self.context.namespace.as_deref();
                self.children_in(type_, namespace, watch, || {}).await;
            }
        }
    }

    /// Watches the children of one type in each namespace in which an owner has some.
    async fn children_by_namespace(&self, type_: usize, namespaces: &NamespacesOfType) {
        let mut needed = namespaces.needed();
        let mut active = BTreeSet::new();
        let mut watches = FuturesUnordered::new();
        let started = self.context.namespace_watches.started(namespaces);
        let mut started = pin!(started.fuse());
        loop {
            let all = needed.borrow_and_update().clone();
            for namespace in all.difference(&active.clone()) {
                active.insert(namespace.clone());
                watches.push(self.children_of_namespace(type_, namespaces, namespace.clone()));
            }
            tokio::select! {
                // The sender lives as long as the controller.
                _ = needed.changed() => {}
                Some(ended) = watches.next() => drop(active.remove(&ended)),
                () = &mut started => self.handler.complete_watch(),
            }
        }
    }

    /// Watches the children of one type in a namespace for as long as an owner needs it or children are left there.
    /// Returns the namespace.
    async fn children_of_namespace(
        &self,
        type_: usize,
        namespaces: &NamespacesOfType,
        namespace: String,
    ) -> String {
        let store = &self.stores.children[type_];
        let mut needed = namespaces.needed();
        let changed = Notify::new();
        let is_unused = async {
            while needed.borrow_and_update().contains(&namespace)
                || !store.in_namespace(&namespace).is_empty()
            {
                tokio::select! {
                    _ = needed.changed() => {}
                    () = changed.notified() => {}
                }
            }
        };
        let sharded = ShardedWatch::ChildrenIn(type_, namespace.clone());
        if let Some(shards) = &self.context.shards {
            shards.start_watch(sharded.clone());
        }
        let watch = self.handler.watch_namespace(type_, &namespace);
        let watching = self.children_in(type_, Some(&namespace), watch, || changed.notify_one());
        tokio::select! {
            () = watching => {}
            () = is_unused => {}
        }
        namespaces.set_ended(&namespace);
        if let Some(shards) = &self.context.shards {
            shards.end_watch(&sharded);
        }
        namespace
    }

    /// Watches the children of one type, in one namespace or in all.
    async fn children_in(
        &self,
        type_: usize,
        namespace: Option<&str>,
        mut watch: Watching<'_>,
        after_change: impl Fn(),
    ) {
        let resource = self.context.owned_types[type_].api_resource();
        let ours = format!("{CONTROLLER_LABEL}={}", self.context.controller);
        let config = watcher::Config::default().labels(&ours);
        let (client, manager) = (watch.client(&self.context.client), &self.context.manager);
        let begin =
            || event_stream::events(&client, resource, namespace, &config, Fields::All, manager);
        let store = &self.stores.children[type_];
        let compress = |child: &DynamicObject| {
            // A child that a reconciliation has written is not stored a second time.
            let written = self.context.written.children.get(type_, child);
            written.unwrap_or_else(|| store.compress(child))
        };
        let handle = |event: WatchEvent<'_>| {
            self.handler.handle(&mut watch, event);
            after_change();
        };
        let intake = Intake {
            store,
            namespace,
            compress,
            keeps: |child: &DynamicObject| self.handler.keeps_child(child),
        };
        let of_namespace = |name: &str| ShardedWatch::ChildrenIn(type_, name.to_owned());
        let is_by_namespace = self.context.namespace_watches.of_type(type_).is_some();
        let sharded = namespace.filter(|_| is_by_namespace).map(of_namespace);
        let sharded = sharded.unwrap_or(ShardedWatch::Children(type_));
        self.follow(sharded, begin, &intake, handle).await;
    }

    /// Watches related objects of one type.
    async fn related(&self, at: usize) {
        let watch = &self.context.watches[at];
        let resource = &watch.resource;
        let mut state = self.handler.watch(Watched::Related(at), resource);
        let client = state.client(&self.context.client);
        let events = self.events(&client, resource, &watch.config, watch.fields());
        let handle = |event: WatchEvent<'_>| self.handler.handle(&mut state, event);
        intake::run(events, &self.stores.related[at].store, handle).await;
    }

    fn events(
        &self,
        client: &Client,
        resource: &ApiResource,
        config: &watcher::Config,
        fields: Fields,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + use<R> {
        let namespace = self.context.namespace.as_deref();
        event_stream::events(
            client,
            resource,
            namespace,
            config,
            fields,
            &self.context.manager,
        )
    }
}
