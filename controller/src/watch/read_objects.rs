//! Objects that reconciliations have read by their names, and the changes of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use kube::api::ApiResource;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::api::read_object::ReadObject;
use crate::cache::capacity::release_unused;
use crate::cache::counted_set::CountedSet;
use crate::cache::object_key::ObjectKey;

/// Type and namespace of objects that are watched together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) resource: ApiResource,
    /// None if the type is cluster-scoped.
    pub(crate) namespace: Option<String>,
}

/// Resource versions by name.
pub(crate) type Versions = HashMap<String, u64>;

/// Objects that reconciliations have read, and what the watches have delivered of them.
#[derive(Default)]
pub(crate) struct ReadObjects {
    state: Mutex<State>,
    places: watch::Sender<HashSet<Place>>,
    has_changed: Notify,
}

#[derive(Default)]
struct State {
    /// Last reads of each reader.
    reads: HashMap<ObjectKey, Vec<Read>>,
    /// Places of all reads.
    places: CountedSet<Place>,
    /// Versions that the watch of each place has delivered, once its initial list is complete.
    delivered: HashMap<Place, Versions>,
    /// Readers of which an object has changed, with its namespace.
    changed: BTreeSet<(ObjectKey, String)>,
}

struct Read {
    place: Place,
    name: String,
    version: Option<u64>,
}

impl Read {
    /// Returns true if the object has changed since, in view of what its watch has delivered.
    fn is_outdated(&self, delivered: Option<u64>) -> bool {
        match (self.version, delivered) {
            (Some(read), Some(delivered)) => delivered > read,
            (read, delivered) => read != delivered,
        }
    }
}

impl ReadObjects {
    /// Records what the last reconciliation of an object has read.
    pub(crate) fn set(&self, reader: &ObjectKey, reads: &[ReadObject]) {
        let mut state = self.state.lock();
        if reads.is_empty() && !state.reads.contains_key(reader) {
            return;
        }
        let reads: Vec<_> = reads.iter().map(read).collect();
        // The watch may have delivered a change before the reconciliation has ended.
        let outdated = reads.iter().find(|read| {
            let delivered = state.delivered.get(&read.place);
            delivered.is_some_and(|all| read.is_outdated(all.get(&read.name).copied()))
        });
        if let Some(outdated) = outdated {
            let namespace = outdated.place.namespace.clone();
            state
                .changed
                .insert((reader.clone(), namespace.unwrap_or_default()));
            self.has_changed.notify_one();
        }
        let State {
            reads: all, places, ..
        } = &mut *state;
        let before = all.remove(reader).unwrap_or_default();
        let places_before = before.iter().map(|read| &read.place);
        if places.replace(places_before, reads.iter().map(|read| &read.place)) {
            self.places.send_replace(places.items().cloned().collect());
        }
        if reads.is_empty() {
            release_unused(all);
        } else {
            all.insert(reader.clone(), reads);
        }
    }

    /// Returns the places with objects that were read.
    pub(crate) fn places(&self) -> watch::Receiver<HashSet<Place>> {
        self.places.subscribe()
    }

    /// Records the state of an object; none if it does not exist.
    pub(crate) fn on_change(&self, place: &Place, name: &str, version: Option<u64>) {
        let mut state = self.state.lock();
        if let Some(delivered) = state.delivered.get_mut(place) {
            match version {
                Some(version) => drop(delivered.insert(name.to_owned(), version)),
                None => drop(delivered.remove(name)),
            }
        }
        self.report(&mut state, place, |read| {
            read.name == name && read.is_outdated(version)
        });
    }

    /// Records the complete list of a place.
    pub(crate) fn on_list(&self, place: &Place, all: Versions) {
        let mut state = self.state.lock();
        self.report(&mut state, place, |read| {
            read.is_outdated(all.get(&read.name).copied())
        });
        state.delivered.insert(place.clone(), all);
    }

    /// Records that a place is no longer watched.
    pub(crate) fn on_end(&self, place: &Place) {
        self.state.lock().delivered.remove(place);
    }

    /// Waits for changes, and returns the readers of the changed objects, with the namespaces of these.
    pub(crate) async fn changed(&self) -> BTreeSet<(ObjectKey, String)> {
        self.has_changed.notified().await;
        std::mem::take(&mut self.state.lock().changed)
    }

    fn report(&self, state: &mut State, place: &Place, is_outdated: impl Fn(&Read) -> bool) {
        let is_affected = |read: &Read| read.place == *place && is_outdated(read);
        let readers = state.reads.iter();
        let affected = readers.filter(|(_, reads)| reads.iter().any(is_affected));
        let namespace = place.namespace.clone().unwrap_or_default();
        let affected = affected.map(|(reader, _)| (reader.clone(), namespace.clone()));
        let affected: Vec<_> = affected.collect();
        if !affected.is_empty() {
            state.changed.extend(affected);
            self.has_changed.notify_one();
        }
    }
}

fn read(object: &ReadObject) -> Read {
    let version = object.resource_version.as_ref();
    Read {
        place: Place {
            resource: object.resource.clone(),
            namespace: object.namespace.clone(),
        },
        name: object.name.clone(),
        version: version.and_then(|version| version.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    fn secret(name: &str, version: Option<&str>) -> ReadObject {
        let mut read = ReadObject::of::<Secret>("n", name, None);
        read.resource_version = version.map(String::from);
        read
    }

    fn versions(all: &[(&str, u64)]) -> Versions {
        all.iter()
            .map(|(name, version)| ((*name).to_owned(), *version))
            .collect()
    }

    /// Returns the names of the readers that are to be reconciled.
    fn changed(objects: &ReadObjects) -> Vec<String> {
        let changed = objects.changed().now_or_never().unwrap_or_default();
        changed
            .into_iter()
            .map(|(reader, _)| reader.name().to_owned())
            .collect()
    }

    #[test]
    fn readers_are_reconciled_after_changes_since_they_have_read() {
        let objects = ReadObjects::default();
        let (a, b) = (ObjectKey::new("n", "a"), ObjectKey::new("n", "b"));
        objects.set(&a, &[secret("x", Some("5")), secret("missing", None)]);
        objects.set(&b, &[secret("y", Some("6"))]);
        let places = objects.places().borrow().clone();
        assert_eq!(places.len(), 1, "one type in one namespace");
        let place = places.into_iter().next().expect("a place");
        for (all, expected) in [
            (versions(&[("x", 5), ("y", 6), ("unread", 9)]), vec![]),
            (versions(&[("x", 4), ("y", 6)]), vec![]),
            (versions(&[("x", 5)]), vec!["b"]),
            (
                versions(&[("x", 7), ("y", 8), ("missing", 9)]),
                vec!["a", "b"],
            ),
        ] {
            objects.on_list(&place, all.clone());
            assert_eq!(changed(&objects), expected, "{all:?}");
        }
        for (name, version, expected) in [
            ("x", Some(5), vec![]),
            ("x", Some(6), vec!["a"]),
            ("x", None, vec!["a"]),
            ("missing", None, vec![]),
            ("missing", Some(7), vec!["a"]),
            ("unread", Some(10), vec![]),
        ] {
            objects.on_change(&place, name, version);
            assert_eq!(changed(&objects), expected, "{name} {version:?}");
        }
    }

    #[test]
    fn a_change_during_the_reconciliation_is_not_lost() {
        let objects = ReadObjects::default();
        let key = ObjectKey::new("n", "a");
        objects.set(&key, &[secret("x", Some("5"))]);
        let place = objects
            .places()
            .borrow()
            .iter()
            .next()
            .cloned()
            .expect("a place");
        objects.on_list(&place, versions(&[("x", 5)]));
        // The watch is faster than the reconciliation that reads `y`.
        objects.on_change(&place, "y", Some(8));
        assert_eq!(changed(&objects), <[&str; 0]>::default());
        objects.set(&key, &[secret("y", Some("7"))]);
        assert_eq!(changed(&objects), ["a"]);
        objects.set(&key, &[secret("y", Some("8"))]);
        assert_eq!(changed(&objects), <[&str; 0]>::default());
        objects.set(&key, &[]);
        assert!(objects.places().borrow().is_empty());
        objects.on_change(&place, "y", Some(9));
        assert_eq!(changed(&objects), <[&str; 0]>::default());
    }
}
