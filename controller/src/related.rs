//! The objects that others depend on, as the watches have brought them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DynamicObject};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::index::Index;
use crate::kept::{Key, Label, Store, key_of};
use crate::predicate::Change;
use crate::reconcile::ReconcileError;
use crate::watch::Watch;

/// What one watch has brought.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) store: Store,
    keyed: Mutex<Keyed>,
}

/// Where objects are found, by what their watch finds them under, and what it tells of each there.
#[derive(Default)]
struct Keyed {
    places: Index<Key, String>,
    told: HashMap<Key, BTreeMap<String, Value>>,
}

impl Watched {
    /// What is kept already.
    pub(crate) fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            keyed: Mutex::default(),
        }
    }

    /// Takes note of where an object is found from now on.
    pub(crate) fn saw(&self, watch: &Watch, change: &Change<'_, DynamicObject>) {
        let Some(object) = change.after.or(change.before).filter(|_| watch.is_keyed()) else {
            return;
        };
        let told = change.after.map(|after| watch.keys(after));
        let told = told.unwrap_or_default();
        let place = key_of(object);
        let mut keyed = self.keyed();
        keyed.places.set(&place, told.keys().cloned().collect());
        if told.is_empty() {
            keyed.told.remove(&place);
        } else {
            keyed.told.insert(place, told);
        }
    }

    /// Those under a key, by where they are.
    pub(crate) fn places(&self, key: &str) -> Vec<Key> {
        self.keyed().places.get(&key.to_owned()).cloned().collect()
    }

    /// What is told of those under a key, by where they are.
    fn told(&self, key: &str) -> Vec<(Key, Value)> {
        let keyed = self.keyed();
        let key = key.to_owned();
        let told = keyed.places.get(&key).filter_map(|place| {
            let told = keyed.told.get(place)?.get(&key)?;
            Some((place.clone(), told.clone()))
        });
        told.collect()
    }

    fn keyed(&self) -> MutexGuard<'_, Keyed> {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many objects there are of those that another depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// None, yet.
    None,
    /// The one.
    One(T),
    /// More than one; their names.
    Many(Vec<String>),
}

/// The objects that are watched for an operator, as the watches have brought them.
#[derive(Clone, Copy, Default)]
pub struct Related<'a> {
    pub(crate) watches: &'a [Watch],
    pub(crate) watched: &'a [Watched],
    pub(crate) namespace: &'a str,
}

impl std::fmt::Debug for Related<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.watches.iter().map(|watch| &watch.resource.kind);
        f.debug_list().entries(kinds).finish()
    }
}

impl Related<'_> {
    /// The one of a type and a name, in the object's namespace. Of a watch on metadata, that is all there is.
    ///
    /// # Errors
    ///
    /// No watch is on that type, or the object cannot be read as it.
    pub fn named<T>(&self, name: &str) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let mut watched = self.watched(&T::group(&()), &T::kind(&()))?.into_iter();
        let key = (self.namespace.to_owned(), name.to_owned());
        let found = watched.find_map(|watched| watched.store.get(&key));
        found.map(|found| read(&found.open())).transpose()
    }

    /// Those of a type with a label, in the object's namespace: none, one, or too many to tell which is meant.
    ///
    /// # Errors
    ///
    /// As [`Related::named`].
    pub fn labelled<T>(&self, name: &str, value: &str) -> Result<Found<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let watched = self.watched(&T::group(&()), &T::kind(&()))?.into_iter();
        let has = |object: &DynamicObject| object.labels().get(name).is_some_and(|it| it == value);
        let label = Label::new(name, value);
        let candidates = watched.flat_map(|watched| watched.store.within(self.namespace));
        let candidates = candidates.filter(|kept| kept.may_carry(&label));
        let found = candidates.map(|kept| kept.open()).filter(has);
        // One that several watches bring is one.
        let found: BTreeMap<_, _> = found.map(|object| (object.name_any(), object)).collect();
        let found: Vec<_> = found.into_values().collect();
        match found.as_slice() {
            [] => Ok(Found::None),
            [one] => Ok(Found::One(read(one)?)),
            many => {
                let mut names: Vec<_> = many.iter().map(|object| object.name_any()).collect();
                names.sort_unstable();
                Ok(Found::Many(names))
            }
        }
    }

    /// What is told of those of a type that their watch [finds under a key](Watch::keyed), in whatever namespace, in
    /// the order of their namespaces and names.
    ///
    /// # Errors
    ///
    /// No watch is on that type.
    pub fn keyed(&self, resource: &ApiResource, key: &str) -> Result<Vec<Value>, ReconcileError> {
        let watched = self.watched(&resource.group, &resource.kind)?;
        // One that several watches bring is one.
        let found = watched.into_iter().flat_map(|watched| watched.told(key));
        let found: BTreeMap<_, _> = found.collect();
        Ok(found.into_values().collect())
    }

    /// What the watches on a type have brought.
    fn watched(&self, group: &str, kind: &str) -> Result<Vec<&Watched>, ReconcileError> {
        let is_it = |watch: &Watch| watch.resource.kind == kind && watch.resource.group == group;
        let watched = self.watches.iter().zip(self.watched);
        let watched = watched.filter_map(|(watch, watched)| is_it(watch).then_some(watched));
        let watched: Vec<_> = watched.collect();
        if watched.is_empty() {
            let message =
                format!("the operator asks for a {kind} and watches none; add a `Watch` on it");
            return Err(ReconcileError::Permanent {
                reason: "NotWatched",
                message,
            });
        }
        Ok(watched)
    }
}

fn read<T: DeserializeOwned>(object: &DynamicObject) -> Result<T, ReconcileError> {
    let read = serde_json::to_value(object).and_then(serde_json::from_value);
    read.map_err(|error| ReconcileError::Transient {
        reason: "DependencyUnreadable",
        message: format!("'{}' cannot be read: {error}", object.name_any()),
    })
}
