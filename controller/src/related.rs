//! The objects that others depend on, and who depends on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kept::{Label, Store};
use crate::predicate::Change;
use crate::reconcile::ReconcileError;
use crate::watch::{Reference, Watch};

/// What is referred to: the place of a watch in the operator's list, a namespace, and how.
pub(crate) type Target = (usize, String, Reference);

/// Who refers to what, both ways.
pub(crate) struct Referrers<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    by_target: HashMap<Target, BTreeSet<K>>,
    targets: HashMap<K, BTreeSet<Target>>,
    /// Those of which it cannot be told what they refer to.
    unclear: BTreeSet<K>,
}

impl<K> Default for Referrers<K> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                by_target: HashMap::new(),
                targets: HashMap::new(),
                unclear: BTreeSet::new(),
            }),
        }
    }
}

impl<K: Clone + Ord + Hash> Referrers<K> {
    /// Takes what an object now refers to; nothing, when it is gone. Gives what has begun or ceased to be referred
    /// to by it.
    pub(crate) fn set(&self, key: &K, targets: BTreeSet<Target>) -> Vec<Target> {
        let mut state = self.state();
        state.unclear.remove(key);
        let before = state.targets.remove(key).unwrap_or_default();
        let changed: Vec<_> = before.symmetric_difference(&targets).cloned().collect();
        for target in before.difference(&targets) {
            if let Some(keys) = state.by_target.get_mut(target) {
                keys.remove(key);
                if keys.is_empty() {
                    state.by_target.remove(target);
                }
            }
        }
        for target in targets.difference(&before) {
            let keys = state.by_target.entry(target.clone()).or_default();
            keys.insert(key.clone());
        }
        if !targets.is_empty() {
            state.targets.insert(key.clone(), targets);
        }
        changed
    }

    /// Takes that it cannot be told what an object now refers to. What it did refer to stands.
    pub(crate) fn set_unclear(&self, key: &K) {
        self.state().unclear.insert(key.clone());
    }

    /// Whether there are some of which it cannot be told what they refer to.
    pub(crate) fn are_unclear(&self) -> bool {
        !self.state().unclear.is_empty()
    }

    /// Those that refer to an object, as it is or as it was.
    pub(crate) fn of(&self, watch: usize, change: &Change<'_, DynamicObject>) -> BTreeSet<K> {
        let state = self.state();
        let mut found = BTreeSet::new();
        for object in [change.before, change.after].into_iter().flatten() {
            let namespace = object.namespace().unwrap_or_default();
            let labels = object.labels().iter();
            let labels =
                labels.map(|(name, value)| Reference::Labelled(name.clone(), value.clone()));
            for reference in labels.chain([Reference::Named(object.name_any())]) {
                let target = (watch, namespace.clone(), reference);
                found.extend(state.by_target.get(&target).into_iter().flatten().cloned());
            }
        }
        found
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an object refers to, by all watches.
///
/// None where that cannot be told.
pub(crate) fn targets(
    watches: &[Watch],
    namespace: &str,
    object: &Value,
) -> Option<BTreeSet<Target>> {
    let mut targets = BTreeSet::new();
    for (at, watch) in watches.iter().enumerate() {
        let references = watch.references(object)?.into_iter();
        targets.extend(references.map(|reference| (at, namespace.to_owned(), reference)));
    }
    Some(targets)
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
    pub(crate) stores: &'a [Store],
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
        let mut stores = self.stores::<T>()?.into_iter();
        let key = (self.namespace.to_owned(), name.to_owned());
        let found = stores.find_map(|store| store.get(&key));
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
        let stores = self.stores::<T>()?.into_iter();
        let has = |object: &DynamicObject| object.labels().get(name).is_some_and(|it| it == value);
        let label = Label::new(name, value);
        let candidates = stores.flat_map(|store| store.within(self.namespace));
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

    /// What the watches on a type have brought.
    fn stores<T: Resource<DynamicType = ()>>(&self) -> Result<Vec<&Store>, ReconcileError> {
        let is_it = |watch: &Watch| {
            watch.resource.kind == T::kind(&()) && watch.resource.group == T::group(&())
        };
        let stores = self.watches.iter().zip(self.stores);
        let stores = stores.filter_map(|(watch, store)| is_it(watch).then_some(store));
        let stores: Vec<_> = stores.collect();
        if stores.is_empty() {
            let message = format!(
                "the operator asks for a {} and watches none; add a `Watch` on it",
                T::kind(&())
            );
            return Err(ReconcileError::Permanent {
                reason: "NotWatched",
                message,
            });
        }
        Ok(stores)
    }
}

fn read<T: DeserializeOwned>(object: &DynamicObject) -> Result<T, ReconcileError> {
    let read = serde_json::to_value(object).and_then(serde_json::from_value);
    read.map_err(|error| ReconcileError::Transient {
        reason: "DependencyUnreadable",
        message: format!("'{}' cannot be read: {error}", object.name_any()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn object(name: &str, labels: &Value) -> Arc<DynamicObject> {
        let metadata = json!({"name": name, "namespace": "n", "labels": labels});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).expect("an object"))
    }

    fn found(
        referrers: &Referrers<&'static str>,
        before: Option<&Arc<DynamicObject>>,
        after: Option<&Arc<DynamicObject>>,
    ) -> Vec<&'static str> {
        referrers
            .of(0, &Change { before, after })
            .into_iter()
            .collect()
    }

    #[test]
    fn those_that_refer_to_an_object_are_found_by_its_name_and_its_labels() {
        let referrers = Referrers::default();
        let named = |name: &str| (0, "n".to_owned(), Reference::Named(name.to_owned()));
        let labelled = (
            0,
            "n".to_owned(),
            Reference::Labelled("app".to_owned(), "db".to_owned()),
        );
        referrers.set(&"a", BTreeSet::from([named("s")]));
        referrers.set(&"b", BTreeSet::from([named("s"), named("t")]));
        referrers.set(&"c", BTreeSet::from([labelled]));
        let (s, t) = (object("s", &json!({})), object("t", &json!({"app": "db"})));
        assert_eq!(found(&referrers, None, Some(&s)), ["a", "b"]);
        assert_eq!(found(&referrers, Some(&t), None), ["b", "c"]);
        // It loses its label, and with it whoever was served by it.
        let bare = object("t", &json!({}));
        assert_eq!(found(&referrers, Some(&t), Some(&bare)), ["b", "c"]);
        let changed = referrers.set(&"b", BTreeSet::from([named("t"), named("u")]));
        assert_eq!(changed, [named("s"), named("u")]);
        assert_eq!(found(&referrers, None, Some(&s)), ["a"]);
        for key in ["a", "b", "c"] {
            referrers.set(&key, BTreeSet::new());
        }
        let state = referrers.state();
        assert!(
            state.by_target.is_empty() && state.targets.is_empty(),
            "nothing is kept"
        );
    }
}
