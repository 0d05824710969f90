//! Single reconciliations for tests.

use futures::stream;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::watcher::Event;
use serde_json::{Map, Value};

use crate::children::CONTROLLER_LABEL;
use crate::cycle::Next;
use crate::kept::Store;
use crate::objects;
use crate::queue::Queue;
use crate::reconcile::Reconcile;
use crate::related::Watched;
use crate::run::Loop;
use crate::watches::{self, Told};
use crate::worker::Worker;

impl<R: Reconcile> Loop<R> {
    /// Reconciles an object once, on the current state of the API server. Nothing is watched and nothing is
    /// requeued: for tests that go through an operator's work one reconciliation at a time. Returns none if the
    /// object does not exist.
    ///
    /// # Errors
    ///
    /// The current state cannot be read from the API server. A failure of the reconciliation itself is
    /// [`Next::Failed`].
    pub async fn step(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Next>, kube::Error> {
        let cycle = &self.cycle;
        let Some(mut object) = cycle.api(namespace).get_opt(name).await? else {
            return Ok(None);
        };
        objects::tidy(&mut object, &cycle.resource);
        for (type_, children) in cycle.child_types.iter().enumerate() {
            let ours = format!("{CONTROLLER_LABEL}={}", cycle.controller);
            let params = ListParams::default().labels(&ours);
            let all = self.list(children.resource(), &params).await?;
            let store = Store::like(cycle.children.pattern(type_));
            let told = |told: Told<'_>| match told {
                Told::Seen(seen) => drop(cycle.children.saw(type_, &seen)),
                Told::Complete => cycle.children.began(type_, &store.all()),
                Told::Failed(_) => {}
            };
            brings(all, &store, told).await;
        }
        let mut related = Vec::new();
        for watch in &cycle.watches {
            let params = ListParams {
                label_selector: watch.config.label_selector.clone(),
                field_selector: watch.config.field_selector.clone(),
                ..ListParams::default()
            };
            let mut all = self.list(&watch.resource, &params).await?;
            if watch.is_metadata_only {
                for object in &mut all {
                    object.data = Value::Object(Map::new());
                }
            }
            let watched = Watched::default();
            let told = |told: Told<'_>| {
                if let Told::Seen(seen) = told {
                    drop(watched.saw(watch, &seen.change));
                }
            };
            brings(all, &watched.store, told).await;
            related.push(watched);
        }
        let worker = Worker {
            cycle,
            store: Store::default(),
            related: &related,
            queue: &Queue::new(cycle.metrics.queue(&cycle.name), self.pace.debounce),
        };
        Ok(Some(worker.reconcile(&object).await))
    }

    async fn list(
        &self,
        resource: &ApiResource,
        params: &ListParams,
    ) -> Result<Vec<DynamicObject>, kube::Error> {
        let namespace = self.cycle.within.as_deref();
        let api = objects::api::<DynamicObject>(&self.cycle.client, resource, namespace);
        let mut all = api.list(params).await?.items;
        for object in &mut all {
            objects::tidy(object, resource);
        }
        Ok(all)
    }
}

/// Passes the objects on as a watch does that has just started.
async fn brings(all: Vec<DynamicObject>, store: &Store, told: impl FnMut(Told<'_>)) {
    let all = all.into_iter().map(Event::InitApply);
    let events = [Event::Init]
        .into_iter()
        .chain(all)
        .chain([Event::InitDone]);
    watches::follow(stream::iter(events.map(Ok)), store, told).await;
}
