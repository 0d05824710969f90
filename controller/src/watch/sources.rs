//! Event sources of a controller: its objects, their children and related objects.

use std::iter::once;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use tokio::sync::watch;

use crate::api::reconciler::Reconciler;
use crate::cache::object_key::ObjectKey;
use crate::children::CONTROLLER_LABEL;
use crate::children::orphans::OrphanCollector;
use crate::controller::context::Context;
use crate::queue::priority_queue::Queue;
use crate::watch::event_stream;
use crate::watch::event_stream::WatchEvent;
use crate::watch::handler::{EventHandler, Watched};
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
        let all: FuturesUnordered<_> = once(parents).chain(children).chain(related).collect();
        all.collect::<()>().await;
    }

    /// Watches the reconciled objects.
    async fn parents(&self) {
        let resource = &self.context.resource;
        let config = watcher::Config::default();
        let events = self.events(resource, &config, false);
        let mut watch = self.handler.watch(Watched::Parents, resource);
        let handle = |event: WatchEvent<'_>| self.handler.handle(&mut watch, event);
        event_stream::run(events, &self.stores.parents, handle).await;
    }

    /// Watches their children of one type.
    async fn children(&self, type_: usize) {
        let resource = self.context.owned_types[type_].api_resource();
        let ours = format!("{CONTROLLER_LABEL}={}", self.context.controller);
        let config = watcher::Config::default().labels(&ours);
        let events = self.events(resource, &config, false);
        let store = &self.stores.children[type_];
        let compress = |child: &DynamicObject| {
            // A child that a reconciliation has written is not stored a second time.
            let written = self.context.written.children.get(type_, child);
            written.unwrap_or_else(|| store.compress(child))
        };
        let mut watch = self.handler.watch(Watched::Children(type_), resource);
        let handle = |event: WatchEvent<'_>| self.handler.handle(&mut watch, event);
        event_stream::run_with_store(events, store, compress, handle).await;
    }

    /// Watches related objects of one type.
    async fn related(&self, at: usize) {
        let watch = &self.context.watches[at];
        let resource = &watch.resource;
        let events = self.events(resource, &watch.config, watch.is_metadata_only);
        let mut watch = self.handler.watch(Watched::Related(at), resource);
        let handle = |event: WatchEvent<'_>| self.handler.handle(&mut watch, event);
        event_stream::run(events, &self.stores.related[at].store, handle).await;
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
}
