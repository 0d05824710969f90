//! Watch streams, as changes of single objects.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use kube::runtime::watcher::{Error, Event};
use serde_json::{Map, Value};

use crate::cache::object_key::ObjectKey;
use crate::cache::store::{CompressedObject, Objects, Store};
use crate::dynamic_object;
use crate::predicate::UpdateEvent;

/// Returns the events of all objects of a kind, in one namespace or in all.
///
/// The initial objects are streamed if the API server supports that, and otherwise listed page by page.
pub(crate) fn events(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    config: &watcher::Config,
    is_metadata_only: bool,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> + use<> {
    let all: Api<DynamicObject> = dynamic_object::api(client, resource, namespace);
    let metadata: Api<PartialObjectMeta<DynamicObject>> =
        dynamic_object::api(client, resource, namespace);
    let begin = |config: watcher::Config| {
        if is_metadata_only {
            let events = watcher(metadata.clone(), config).default_backoff();
            events.map_ok(from_partial).boxed()
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
        .modify(move |object| dynamic_object::set_type_meta(object, &resource))
}

/// Returns true if an API server does not support streaming lists.
fn is_unknown(error: &Error) -> bool {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 400 | 422),
        _ => false,
    }
}

/// Converts metadata into an object without other fields.
fn from_partial(event: Event<PartialObjectMeta<DynamicObject>>) -> Event<DynamicObject> {
    let whole = |object: PartialObjectMeta<DynamicObject>| DynamicObject {
        types: None,
        metadata: object.metadata,
        data: Value::Object(Map::new()),
    };
    match event {
        Event::Apply(object) => Event::Apply(whole(object)),
        Event::Delete(object) => Event::Delete(whole(object)),
        Event::InitApply(object) => Event::InitApply(whole(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Returns the name of a type, as that of its CRD; without a group only the plural.
pub(crate) fn name(resource: &ApiResource) -> String {
    let name = format!("{}.{}", resource.plural, resource.group);
    name.trim_end_matches('.').to_owned()
}

/// Returns why a watch fails, and what to do about it.
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
        Some(404) => format!("failed because the kind does not exist: apply the CRD {name}"),
        _ => format!("failed: {error}"),
    }
}

/// Returns the beginning of a reason that names the namespace of a watch, if it is limited to one.
pub(crate) fn within(namespace: Option<&str>) -> String {
    let within = namespace.map(|name| format!("in the namespace `{name}` "));
    within.unwrap_or_default()
}

/// Event of a watch.
pub(crate) enum WatchEvent<'a> {
    /// An object has changed.
    Changed(ObjectChange<'a>),
    /// The initial list is complete.
    Initialized,
    /// The watch failed or could not start, and is started again.
    Failed(&'a Error),
}

/// Change of an object, and whether it is new: an object of the initial list is not.
pub(crate) struct ObjectChange<'a> {
    pub(crate) change: UpdateEvent<'a, DynamicObject>,
    /// Stored state after the change.
    pub(crate) stored: Option<&'a Arc<CompressedObject>>,
    pub(crate) is_new: bool,
}

impl<'a> ObjectChange<'a> {
    pub(crate) fn of(
        before: Option<&'a Arc<DynamicObject>>,
        after: Option<&'a Arc<DynamicObject>>,
        compressed: Option<&'a Arc<CompressedObject>>,
        is_new: bool,
    ) -> Self {
        Self {
            change: UpdateEvent { before, after },
            stored: compressed,
            is_new,
        }
    }
}

/// Keeps a store up to date and reports every change, once the store contains it. Ends with the stream.
///
/// # Guarantees
///
/// Every change is reported, even if it happened while the watch was interrupted. For such a time the difference
/// of each object is reported, and not its intermediate states.
pub(crate) async fn run(
    events: impl Stream<Item = Result<Event<DynamicObject>, Error>>,
    store: &Store,
    handle: impl FnMut(WatchEvent<'_>),
) {
    let intake = Intake {
        store,
        namespace: None,
        compress: |object: &DynamicObject| store.compress(object),
        keeps: |_: &DynamicObject| true,
    };
    intake.run(events, handle).await;
}

/// Store that a watch keeps up to date.
pub(crate) struct Intake<'a, C, K> {
    pub(crate) store: &'a Store,
    /// Namespace whose objects the watch delivers, if the store contains those of others, too.
    pub(crate) namespace: Option<&'a str>,
    /// Compresses an object, which another store may already contain.
    pub(crate) compress: C,
    /// Returns false for an object that is not stored: for this watch, it does not exist.
    pub(crate) keeps: K,
}

impl<C, K> Intake<'_, C, K>
where
    C: Fn(&DynamicObject) -> Arc<CompressedObject>,
    K: Fn(&DynamicObject) -> bool,
{
    /// Does the same as [`run`]. If the store has content from an earlier watch, only the differences are reported.
    pub(crate) async fn run(
        &self,
        events: impl Stream<Item = Result<Event<DynamicObject>, Error>>,
        mut handle: impl FnMut(WatchEvent<'_>),
    ) {
        let store = self.store;
        let mut is_first = true;
        // Objects of the list that is being received.
        let mut listed = Objects::new();
        let mut events = pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Err(error) => handle(WatchEvent::Failed(&error)),
                Ok(Event::Apply(object)) if !(self.keeps)(&object) => {
                    remove(store, &object, &mut handle);
                }
                Ok(Event::Apply(object)) => {
                    let compressed = (self.compress)(&object);
                    put(store, object, &compressed, true, &mut handle);
                }
                Ok(Event::Delete(object)) => {
                    let stored = store.remove(&ObjectKey::of(&object));
                    if stored.is_none() && !(self.keeps)(&object) {
                        continue;
                    }
                    // The last state of the deleted object.
                    let before = Arc::new(object);
                    handle(WatchEvent::Changed(ObjectChange::of(
                        Some(&before),
                        None,
                        None,
                        true,
                    )));
                }
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) if !(self.keeps)(&object) => {}
                Ok(Event::InitApply(object)) => {
                    let key = ObjectKey::of(&object);
                    let compressed = (self.compress)(&object);
                    // An unchanged object keeps its stored copy, which another store may share.
                    let existing = store
                        .get(&key)
                        .filter(|existing| existing.has_same_content_as(&compressed));
                    let is_unchanged = existing.is_some();
                    let compressed = existing.unwrap_or(compressed);
                    listed.insert(key, Arc::clone(&compressed));
                    if is_first && !is_unchanged {
                        // In the first list every object is new, so it is reported before the list is complete.
                        put(store, object, &compressed, false, &mut handle);
                    }
                }
                Ok(Event::InitDone) => {
                    let before = store.replace(self.namespace, std::mem::take(&mut listed));
                    let is_new = !std::mem::take(&mut is_first);
                    emit_diff_after_relist(store, self.namespace, &before, is_new, &mut handle);
                    handle(WatchEvent::Initialized);
                }
            }
        }
    }
}

/// Removes an object that is no longer kept, and reports that if it was stored.
fn remove(store: &Store, object: &DynamicObject, handle: &mut impl FnMut(WatchEvent<'_>)) {
    if let Some(before) = store.remove(&ObjectKey::of(object)) {
        let before = Arc::new(before.decompress());
        let seen = ObjectChange::of(Some(&before), None, None, true);
        handle(WatchEvent::Changed(seen));
    }
}

/// Stores an object and reports the change.
fn put(
    store: &Store,
    object: DynamicObject,
    compressed: &Arc<CompressedObject>,
    is_new: bool,
    handle: &mut impl FnMut(WatchEvent<'_>),
) {
    let before = store.put(ObjectKey::of(&object), Arc::clone(compressed));
    let before = before.map(|before| Arc::new(before.decompress()));
    let after = Arc::new(object);
    let seen = ObjectChange::of(before.as_ref(), Some(&after), Some(compressed), is_new);
    handle(WatchEvent::Changed(seen));
}

/// Reports each object that differs from the previous content of the store, unless it was reported before.
fn emit_diff_after_relist(
    store: &Store,
    namespace: Option<&str>,
    before: &Objects,
    is_new: bool,
    handle: &mut impl FnMut(WatchEvent<'_>),
) {
    for key in store.keys(namespace) {
        let Some(compressed) = store.get(&key) else {
            continue;
        };
        let before = before.get(&key);
        // Already reported, or unchanged.
        if before.is_some_and(|before| Arc::ptr_eq(before, &compressed)) {
            continue;
        }
        let before = before.map(|before| Arc::new(before.decompress()));
        let after = Arc::new(compressed.decompress());
        let seen = ObjectChange::of(before.as_ref(), Some(&after), Some(&compressed), is_new);
        handle(WatchEvent::Changed(seen));
    }
    for (_, gone) in before.iter().filter(|(key, _)| store.get(key).is_none()) {
        let before = Arc::new(gone.decompress());
        let seen = ObjectChange::of(Some(&before), None, None, is_new);
        handle(WatchEvent::Changed(seen));
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;

    fn resource() -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"))
    }

    fn object(name: &str, version: i64) -> DynamicObject {
        let mut object = DynamicObject::new(name, &resource());
        object.metadata.generation = Some(version);
        object.data(json!({}))
    }

    /// Returns what is reported for these events: name, generation before and after, and whether it was in the
    /// initial list.
    async fn observe(events: Vec<Event<DynamicObject>>) -> Vec<String> {
        let mut observed = Vec::new();
        let store = Store::default();
        let of = |object: Option<&Arc<DynamicObject>>| {
            let generation = object.and_then(|object| object.metadata.generation);
            generation.map_or("-".to_owned(), |generation| generation.to_string())
        };
        let lists = events.iter().filter(|event| matches!(event, Event::Init));
        let lists = lists.count();
        let failures = vec![Err(Error::NoResourceVersion)];
        let events = stream::iter(failures).chain(stream::iter(events.into_iter().map(Ok)));
        let mut failed = 0;
        let mut completed = 0;
        let handle = |news: WatchEvent<'_>| {
            let seen = match news {
                WatchEvent::Changed(seen) => seen,
                WatchEvent::Initialized => return completed += 1,
                WatchEvent::Failed(_) => return failed += 1,
            };
            let UpdateEvent { before, after } = seen.change;
            let name = after
                .or(before)
                .and_then(|object| object.metadata.name.clone());
            let name = name.unwrap_or_default();
            let stored = store.get(&ObjectKey::new("", &name));
            let stored = stored.map(|stored| Arc::new(stored.decompress()));
            assert_eq!(stored.as_ref(), after, "the store contains it");
            let news = if seen.is_new { "" } else { " at the start" };
            observed.push(format!("{name} {}>{}{news}", of(before), of(after)));
        };
        run(events, &store, handle).await;
        assert_eq!((failed, completed), (1, lists));
        observed.sort_unstable();
        observed
    }

    #[tokio::test]
    async fn every_change_is_reported_with_the_state_before() {
        let observed = observe(vec![
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
        assert_eq!(observed, expected);
    }

    #[tokio::test]
    async fn a_change_during_an_interruption_is_reported_afterwards() {
        let observed = observe(vec![
            Event::Init,
            Event::InitApply(object("a", 1)),
            Event::InitApply(object("b", 1)),
            Event::InitApply(object("d", 1)),
            Event::InitDone,
            Event::Init,
            Event::InitApply(object("d", 1)),
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
            "d ->1 at the start",
        ];
        let mut expected = expected.map(String::from);
        expected.sort_unstable();
        assert_eq!(observed, expected);
    }
}
