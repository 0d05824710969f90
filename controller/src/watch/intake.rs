//! Intake of watch events: keeps a store up to date and reports every change.

use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::api::DynamicObject;
use kube::runtime::watcher::{Error, Event};

use crate::cache::object_key::ObjectKey;
use crate::cache::store::{CompressedObject, Objects, Store};
use crate::watch::event_stream::{ObjectChange, WatchEvent};

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
    let replaced = store.put(ObjectKey::of(&object), Arc::clone(compressed));
    let before = replaced.as_ref();
    let before = before.map(|before| Arc::new(before.decompress()));
    if let (Some(replaced), Some(before)) = (&replaced, &before)
        && replaced.uid() == compressed.uid()
        && before.metadata.generation == object.metadata.generation
    {
        // The spec is the same.
        compressed.set_quickly_validated(replaced.is_quickly_validated());
    }
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
    use kube::api::ApiResource;
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;
    use crate::predicate::UpdateEvent;

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
    async fn how_long_a_validation_took_is_known_until_the_spec_changes() {
        let store = Store::default();
        let key = ObjectKey::new("", "a");
        let apply = async |version: i64, label: &str| {
            let mut object = object("a", version);
            object.metadata.labels = Some([(label.to_owned(), String::new())].into());
            let events = stream::iter([Ok(Event::Apply(object))]);
            run(events, &store, |_| {}).await;
            store.get(&key).expect("it is stored")
        };
        apply(1, "first").await.set_quickly_validated(true);
        assert!(apply(1, "other").await.is_quickly_validated());
        assert!(!apply(2, "other").await.is_quickly_validated());
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
    async fn only_kept_objects_are_stored_and_a_further_run_reports_the_differences() {
        let store = Store::default();
        let kept = std::cell::RefCell::new(vec!["a", "b"]);
        let intake = Intake {
            store: &store,
            namespace: None,
            compress: |object: &DynamicObject| store.compress(object),
            keeps: |object: &DynamicObject| {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                kept.borrow().contains(&name)
            },
        };
        let run = async |events: Vec<Event<DynamicObject>>| {
            let mut reported = Vec::new();
            let handle = |event: WatchEvent<'_>| {
                if let WatchEvent::Changed(seen) = event {
                    let UpdateEvent { before, after } = seen.change;
                    let object = after.or(before).expect("an object");
                    let name = object.metadata.name.clone().unwrap_or_default();
                    reported.push((name, after.is_some()));
                }
            };
            intake
                .run(stream::iter(events.into_iter().map(Ok)), handle)
                .await;
            reported.sort_unstable();
            reported
        };
        let changed = |name: &str| (name.to_owned(), true);
        let gone = |name: &str| (name.to_owned(), false);
        let reported = run(vec![
            Event::Init,
            Event::InitApply(object("a", 1)),
            Event::InitApply(object("c", 1)),
            Event::InitDone,
            Event::Apply(object("b", 1)),
            Event::Apply(object("d", 1)),
            Event::Delete(object("d", 1)),
        ]);
        assert_eq!(reported.await, [changed("a"), changed("b")]);
        // One object leaves and another one comes.
        *kept.borrow_mut() = vec!["b", "c"];
        let reported = run(vec![
            Event::Apply(object("a", 2)),
            Event::Apply(object("a", 3)),
        ]);
        assert_eq!(reported.await, [gone("a")]);
        let reported = run(vec![
            Event::Init,
            Event::InitApply(object("a", 3)),
            Event::InitApply(object("b", 1)),
            Event::InitApply(object("c", 1)),
            Event::InitDone,
        ]);
        assert_eq!(reported.await, [changed("c")]);
        assert_eq!(store.keys(None).len(), 2);
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
