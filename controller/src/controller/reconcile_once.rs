//! Single reconciliations for tests.

use futures::stream;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::watcher::Event;
use serde_json::{Map, Value};

use crate::api::reconciler::Reconciler;
use crate::cache::related::RelatedCache;
use crate::cache::store::Store;
use crate::children::CONTROLLER_LABEL;
use crate::controller::Controller;
use crate::controller::worker::Worker;
use crate::custom_object::OwnedObject;
use crate::dynamic_object;
use crate::queue::priority_queue::Queue;
use crate::reconcile::action::Action;
use crate::watch::event_stream::WatchEvent;
use crate::watch::intake;

impl<R: Reconciler> Controller<R> {
    /// Reconciles an object once, on the current state of the API server. Nothing is watched and nothing is
    /// requeued: for tests that go through an operator's work one reconciliation at a time. Returns none if the
    /// object does not exist.
    ///
    /// # Errors
    ///
    /// The current state cannot be read from the API server. A failure of the reconciliation itself is
    /// [`Action::Backoff`].
    pub async fn reconcile_once(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Action>, kube::Error> {
        let context = &self.context;
        let Some(stored) = context.api(namespace).get_opt(name).await? else {
            return Ok(None);
        };
        let mut object = stored.into_inner();
        dynamic_object::set_type_meta(&mut object, &context.resource, &context.manager);
        for (type_, children) in context.owned_types.iter().enumerate() {
            let ours = format!("{CONTROLLER_LABEL}={}", context.controller);
            let params = ListParams::default().labels(&ours);
            let mut all = Vec::new();
            for namespace in self.namespaces_of_children(type_, &object) {
                let resource = children.api_resource();
                all.extend(self.list(resource, namespace.as_deref(), &params).await?);
            }
            let store = Store::with_dictionary(context.written.children.dictionary(type_));
            let on_event = |event: WatchEvent<'_>| match event {
                WatchEvent::Changed(seen) => drop(context.written.children.on_change(type_, &seen)),
                WatchEvent::Initialized => {
                    let all = store.all();
                    context.written.children.initialize(type_, None, &all);
                }
                WatchEvent::Failed(_) => {}
            };
            deliver(all, &store, on_event).await;
        }
        let namespace = context.namespace.as_deref();
        let mut related = Vec::new();
        for watch in &context.watches {
            let params = ListParams {
                label_selector: watch.config.label_selector.clone(),
                field_selector: watch.config.field_selector.clone(),
                ..ListParams::default()
            };
            let mut all = self.list(&watch.resource, namespace, &params).await?;
            if watch.is_metadata_only {
                for object in &mut all {
                    object.data = Value::Object(Map::new());
                }
            }
            let watched = RelatedCache::default();
            let on_event = |event: WatchEvent<'_>| {
                if let WatchEvent::Changed(seen) = event {
                    drop(watched.on_change(watch, &seen.change));
                }
            };
            deliver(all, &watched.store, on_event).await;
            related.push(watched);
        }
        let worker = Worker {
            context,
            store: Store::default(),
            related: &related,
            queue: &Queue::new(
                context.metrics.queue(&context.name),
                self.config.debounce,
                None,
            ),
        };
        Ok(Some(worker.reconcile(&object, None).await))
    }

    /// Returns the namespaces in which an object may have children of a type; none stands for all of them.
    fn namespaces_of_children(&self, type_: usize, object: &DynamicObject) -> Vec<Option<String>> {
        match self.context.namespace_watches.of_type(type_) {
            Some(namespaces) => {
                let object = dynamic_object::to_value(object).unwrap_or_default();
                let namespaces = namespaces.namespaces_of(&object);
                namespaces.into_iter().map(Some).collect()
            }
            None => vec![self.context.namespace.clone()],
        }
    }

    async fn list(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Vec<DynamicObject>, kube::Error> {
        let api = dynamic_object::api::<OwnedObject>(&self.context.client, resource, namespace);
        let listed = api.list(params).await?.items;
        let mut all: Vec<_> = listed.into_iter().map(DynamicObject::from).collect();
        for object in &mut all {
            dynamic_object::set_type_meta(object, resource, &self.context.manager);
        }
        Ok(all)
    }
}

/// Passes the objects on as a watch does that has just started.
async fn deliver(all: Vec<DynamicObject>, store: &Store, on_event: impl FnMut(WatchEvent<'_>)) {
    let all = all.into_iter().map(Event::InitApply);
    let events = [Event::Init]
        .into_iter()
        .chain(all)
        .chain([Event::InitDone]);
    intake::run(stream::iter(events.map(Ok)), store, on_event).await;
}
