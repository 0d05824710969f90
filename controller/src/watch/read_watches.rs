//! Watches on the metadata of objects that reconciliations have read by their names.

use std::collections::HashSet;
use std::pin::pin;

use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use lockstep_watch::WatchState;

use crate::api::reconciler::Reconciler;
use crate::controller::context::Context;
use crate::dynamic_object::resource_version;
use crate::watch::event_stream;
use crate::watch::event_stream::Fields;
use crate::watch::handler::EventHandler;
use crate::watch::read_objects::{Place, Versions};

/// Runs a watch for each type and namespace of such objects, and enqueues the readers of those that change.
pub(crate) async fn run<R: Reconciler>(context: &Context<R>, handler: &EventHandler<'_, R>) {
    let objects = &context.read_objects;
    let mut places = objects.places();
    let mut active = HashSet::new();
    let mut watches = FuturesUnordered::new();
    loop {
        let all = places.borrow_and_update().clone();
        for place in all {
            if active.insert(place.clone()) {
                watches.push(until_unused(context, place));
            }
        }
        tokio::select! {
            // The sender lives as long as the controller.
            _ = places.changed() => {}
            Some(ended) = watches.next() => drop(active.remove(&ended)),
            readers = objects.changed() => handler.enqueue_readers(readers),
        }
    }
}

/// Watches a place for as long as objects in it have been read. Returns the place.
async fn until_unused<R>(context: &Context<R>, place: Place) -> Place {
    let objects = &context.read_objects;
    let mut places = objects.places();
    let Place {
        resource,
        namespace,
    } = &place;
    let connection = context
        .metrics
        .watch(&context.name, &event_stream::name(resource));
    let config = watcher::Config::default();
    let events = event_stream::events(
        &connection.client(&context.client),
        resource,
        namespace.as_deref(),
        &config,
        Fields::Metadata,
        &context.manager,
    );
    tokio::select! {
        () = deliver(context, &place, &connection, events) => {}
        _ = places.wait_for(|places| !places.contains(&place)) => {}
    }
    objects.on_end(&place);
    place
}

/// Passes on what a watch delivers.
async fn deliver<R>(
    context: &Context<R>,
    place: &Place,
    connection: &WatchState,
    events: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
) {
    let objects = &context.read_objects;
    let resource = event_stream::name(&place.resource);
    let mut listed = Versions::new();
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.extend(resource_version(&object).map(|it| (object.name_any(), it)));
            }
            Ok(Event::InitDone) => {
                connection.set_up();
                objects.on_list(place, std::mem::take(&mut listed));
            }
            Ok(Event::Apply(object)) => {
                connection.set_up();
                objects.on_change(place, &object.name_any(), resource_version(&object));
            }
            Ok(Event::Delete(object)) => objects.on_change(place, &object.name_any(), None),
            Err(error) => {
                let reason = event_stream::reason(&error, &place.resource);
                let (controller, namespace) = (&context.name, &place.namespace);
                tracing::warn!(%error, controller, resource, namespace, "the watch {reason}; retrying");
                connection.set_down(event_stream::within(namespace.as_deref()) + &reason);
            }
        }
    }
}
