//! What a watch brings, as changes of single objects.

use std::collections::HashMap;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::runtime::watcher::{Error, Event};
use serde_json::Value;

use crate::objects;
use crate::predicate::Change;

/// Everything that happens to the objects of a kind, in a namespace or in all.
///
/// What stands at the start is streamed where the API server can do that, and else listed page by page.
pub(crate) fn events(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    config: &watcher::Config,
    is_metadata_only: bool,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> + use<> {
    let all: Api<DynamicObject> = objects::api(client, resource, namespace);
    let metadata: Api<PartialObjectMeta<DynamicObject>> = objects::api(client, resource, namespace);
    let begin = |config: watcher::Config| {
        if is_metadata_only {
            let events = watcher(metadata.clone(), config).default_backoff();
            events.map_ok(whole).boxed()
        } else {
            watcher(all.clone(), config).default_backoff().boxed()
        }
    };
    let streamed = begin(config.clone().streaming_lists());
    let streamed = streamed.take_while(|event| ready(!event.as_ref().is_err_and(is_unknown)));
    let listed = begin(config.clone());
    let resource = resource.clone();
    streamed
        .chain(listed)
        .modify(move |object| objects::tidy(object, &resource))
}

/// Whether an API server does not stream what stands at the start.
fn is_unknown(error: &Error) -> bool {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 400 | 422),
        _ => false,
    }
}

/// Metadata as an object that has nothing else.
fn whole(event: Event<PartialObjectMeta<DynamicObject>>) -> Event<DynamicObject> {
    let whole = |object: PartialObjectMeta<DynamicObject>| DynamicObject {
        types: None,
        metadata: object.metadata,
        data: Value::Null,
    };
    match event {
        Event::Apply(object) => Event::Apply(whole(object)),
        Event::Delete(object) => Event::Delete(whole(object)),
        Event::InitApply(object) => Event::InitApply(whole(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// A type as its CRD is named; without a group, its plural alone.
pub(crate) fn name(resource: &ApiResource) -> String {
    let name = format!("{}.{}", resource.plural, resource.group);
    name.trim_end_matches('.').to_owned()
}

/// Why a watch does not bring what happens, and what to do about it.
pub(crate) fn reason(error: &Error, resource: &ApiResource) -> String {
    let name = name(resource);
    let status = match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status))
        | Error::WatchError(status) => Some(status),
        _ => None,
    };
    match status.map(|status| status.code) {
        Some(401 | 403) => format!("is forbidden: grant `list` and `watch` on {name}"),
        Some(404) => format!("finds no such kind: apply the CRD {name}"),
        _ => format!("has failed: {error}"),
    }
}

/// What a watch has to tell.
pub(crate) enum Told<'a> {
    /// Something has happened to an object.
    Seen(Seen<'a>),
    /// All that stands has been told.
    Complete,
    /// The watch has broken off, or could not begin, and is begun again.
    Failed(&'a Error),
}

/// What happened, and whether it is news: what stands when the watch begins is not.
pub(crate) struct Seen<'a> {
    pub(crate) change: Change<'a, DynamicObject>,
    pub(crate) is_news: bool,
}

type Objects = HashMap<ObjectRef<DynamicObject>, Arc<DynamicObject>>;

/// Keeps a store up to date and tells of every change, once the store has it. Ends with the stream.
///
/// # Guarantees
///
/// A change is told however it came about: before our eyes, or while the watch was interrupted. What is
/// told of such a time is what has become of each object, and not what happened to it on the way.
pub(crate) async fn follow(
    events: impl Stream<Item = Result<Event<DynamicObject>, Error>>,
    resource: &ApiResource,
    mut writer: Writer<DynamicObject>,
    mut tell: impl FnMut(Told<'_>),
) {
    let store = writer.as_reader();
    let mut is_first = true;
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tell(Told::Failed(&error));
                continue;
            }
        };
        match &event {
            Event::Apply(object) | Event::Delete(object) => {
                let reference = ObjectRef::from_obj_with(object, resource.clone());
                let mut before = store.get(&reference);
                writer.apply_watcher_event(&event);
                let after = store.get(&reference);
                if after.is_none() {
                    // As it was in the end.
                    before = Some(Arc::new(object.clone()));
                }
                let change = Change {
                    before: before.as_ref(),
                    after: after.as_ref(),
                };
                let is_news = true;
                tell(Told::Seen(Seen { change, is_news }));
            }
            Event::Init | Event::InitApply(_) => writer.apply_watcher_event(&event),
            Event::InitDone => {
                let before = objects(&store, resource);
                writer.apply_watcher_event(&event);
                let after = objects(&store, resource);
                let is_news = !std::mem::take(&mut is_first);
                for (reference, object) in &after {
                    let before = before.get(reference);
                    let after = Some(object);
                    let change = Change { before, after };
                    tell(Told::Seen(Seen { change, is_news }));
                }
                for (_, object) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
                    let before = Some(object);
                    let after = None;
                    let change = Change { before, after };
                    tell(Told::Seen(Seen { change, is_news }));
                }
                tell(Told::Complete);
            }
        }
    }
}

fn objects(store: &Store<DynamicObject>, resource: &ApiResource) -> Objects {
    let objects = store.state().into_iter();
    objects
        .map(|object| {
            let reference = ObjectRef::from_obj_with(&*object, resource.clone());
            (reference, object)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use kube::core::GroupVersionKind;

    use super::*;

    fn resource() -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"))
    }

    fn object(name: &str, version: i64) -> DynamicObject {
        let mut object = DynamicObject::new(name, &resource());
        object.metadata.generation = Some(version);
        object
    }

    /// What is told of these events: name, generation before and after, and whether it is news.
    async fn told(events: Vec<Event<DynamicObject>>) -> Vec<String> {
        let mut told = Vec::new();
        let writer = Writer::new(resource());
        let store = writer.as_reader();
        let of = |object: Option<&Arc<DynamicObject>>| {
            let generation = object.and_then(|object| object.metadata.generation);
            generation.map_or("-".to_owned(), |generation| generation.to_string())
        };
        let beginnings = events.iter().filter(|event| matches!(event, Event::Init));
        let beginnings = beginnings.count();
        let failures = vec![Err(Error::NoResourceVersion)];
        let events = stream::iter(failures).chain(stream::iter(events.into_iter().map(Ok)));
        let mut failed = 0;
        let mut completed = 0;
        let tell = |news: Told<'_>| {
            let seen = match news {
                Told::Seen(seen) => seen,
                Told::Complete => return completed += 1,
                Told::Failed(_) => return failed += 1,
            };
            let Change { before, after } = seen.change;
            let name = after
                .or(before)
                .and_then(|object| object.metadata.name.clone());
            let name = name.unwrap_or_default();
            let stored = store.get(&ObjectRef::new_with(&name, resource()));
            assert_eq!(stored.as_ref(), after, "the store has it");
            let news = if seen.is_news { "" } else { " at the start" };
            told.push(format!("{name} {}>{}{news}", of(before), of(after)));
        };
        follow(events, &resource(), writer, tell).await;
        assert_eq!((failed, completed), (1, beginnings));
        told.sort_unstable();
        told
    }

    #[tokio::test]
    async fn every_change_is_told_with_what_was_before() {
        let told = told(vec![
            Event::Init,
            Event::InitApply(object("a", 1)),
            Event::InitDone,
            Event::Apply(object("a", 2)),
            Event::Apply(object("b", 1)),
            Event::Delete(object("b", 1)),
        ])
        .await;
        let expected = ["a 1>2", "a ->1 at the start", "b ->1", "b 1>-"];
        let mut expected = expected.map(String::from);
        expected.sort_unstable();
        assert_eq!(told, expected);
    }

    #[tokio::test]
    async fn what_happened_during_an_interruption_is_told_after_it() {
        let told = told(vec![
            Event::Init,
            Event::InitApply(object("a", 1)),
            Event::InitApply(object("b", 1)),
            Event::InitDone,
            Event::Init,
            Event::InitApply(object("b", 2)),
            Event::InitApply(object("c", 1)),
            Event::InitDone,
        ])
        .await;
        let expected = [
            "a ->1 at the start",
            "b ->1 at the start",
            "a 1>-",
            "b 1>2",
            "c ->1",
        ];
        let mut expected = expected.map(String::from);
        expected.sort_unstable();
        assert_eq!(told, expected);
    }
}
