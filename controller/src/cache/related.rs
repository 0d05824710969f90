//! Cache of related objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject};
use kube::{Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::api::error::ReconcileError;
use crate::cache::bidirectional_map::BidirectionalMap;
use crate::cache::index_entry::IndexValue;
use crate::cache::object_key::ObjectKey;
use crate::cache::store::{LabelPattern, Store};
use crate::predicate::UpdateEvent;
use crate::watch::dependency::Watch;

/// Cache of one watch.
#[derive(Default)]
pub(crate) struct RelatedCache {
    pub(crate) store: Store,
    keyed: Mutex<IndexedValues>,
}

/// Objects by index key, and the value of each object.
#[derive(Default)]
struct IndexedValues {
    keys_by_object: BidirectionalMap<ObjectKey, String>,
    values: HashMap<ObjectKey, Arc<dyn IndexValue>>,
}

impl RelatedCache {
    /// Returns a cache that shares an existing store.
    pub(crate) fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            keyed: Mutex::default(),
        }
    }

    /// Updates the index after a change. Returns the index keys whose content has changed.
    pub(crate) fn on_change(
        &self,
        watch: &Watch,
        change: &UpdateEvent<'_, DynamicObject>,
    ) -> Vec<String> {
        let Some(object) = change
            .after
            .or(change.before)
            .filter(|_| watch.is_indexed())
        else {
            return Vec::new();
        };
        let object_key = ObjectKey::of(object);
        let entry = change.after.and_then(|after| watch.index_entry(after));
        let (keys, value) = entry.map(|entry| (entry.keys, entry.value)).unzip();
        let keys: BTreeSet<_> = keys.unwrap_or_default();
        let value = value.filter(|_| !keys.is_empty());
        let mut keyed = self.keyed.lock();
        let came_or_went = keyed.keys_by_object.set(&object_key, keys.clone());
        let before = match &value {
            Some(value) => keyed.values.insert(object_key, Arc::clone(value)),
            None => keyed.values.remove(&object_key),
        };
        let is_as_before = match (before, value) {
            (Some(before), Some(value)) => before.is_equal_to(&*value),
            // An object that is added or removed changes all of its keys.
            _ => true,
        };
        if is_as_before {
            came_or_went
        } else {
            let mut keys = keys;
            keys.extend(came_or_went);
            keys.into_iter().collect()
        }
    }

    /// Returns the keys of the objects under an index key.
    pub(crate) fn object_keys(&self, key: &str) -> Vec<ObjectKey> {
        self.keyed
            .lock()
            .keys_by_object
            .get(&key.to_owned())
            .cloned()
            .collect()
    }

    /// Returns the values of the objects under any of these index keys, with the keys of the objects.
    fn values(&self, keys: &[String]) -> Vec<(ObjectKey, Arc<dyn IndexValue>)> {
        let keyed = self.keyed.lock();
        let objects: BTreeSet<_> = keys
            .iter()
            .flat_map(|key| keyed.keys_by_object.get(key))
            .collect();
        let values = objects.into_iter().filter_map(|object| {
            let value = keyed.values.get(object)?;
            Some((object.clone(), Arc::clone(value)))
        });
        values.collect()
    }
}

/// Result of a lookup by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// No object, yet.
    None,
    /// Exactly one object.
    One(T),
    /// More than one object, with their names.
    Many(Vec<String>),
}

/// The related objects, as cached from the operator's watches.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Service};
/// use lockstep_controller::{Lookup, ReconcileError, SyncRequest};
///
/// /// Returns the address of the service of a team, and true if the settings exist.
/// fn read<K>(request: &SyncRequest<'_, K>) -> Result<(Option<String>, bool), ReconcileError> {
///     let related = request.related();
///     let settings: Option<ConfigMap> = related.get("settings")?;
///     let address = match related.list_by_label::<Service>("example.com/team", "shop")? {
///         Lookup::One(service) => service.spec.and_then(|spec| spec.cluster_ip),
///         Lookup::None | Lookup::Many(_) => None,
///     };
///     Ok((address, settings.is_some()))
/// }
/// ```
#[derive(Clone, Copy, Default)]
pub struct RelatedObjects<'a> {
    pub(crate) watches: &'a [Watch],
    pub(crate) watched: &'a [RelatedCache],
    pub(crate) namespace: &'a str,
}

impl std::fmt::Debug for RelatedObjects<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.watches.iter().map(|watch| &watch.resource.kind);
        f.debug_list().entries(kinds).finish()
    }
}

impl RelatedObjects<'_> {
    /// Returns the object of a type and name in the object's own namespace. If the watch is on metadata only, so
    /// is the result.
    ///
    /// # Errors
    ///
    /// No watch is on that type, or the object cannot be deserialized as that type.
    pub fn get<T>(&self, name: &str) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let mut watched = self.watched(&T::group(&()), &T::kind(&()))?.into_iter();
        let key = ObjectKey::new(self.namespace, name);
        let found = watched.find_map(|watched| watched.store.get(&key));
        found.map(|found| read(&found.decompress())).transpose()
    }

    /// Returns the object of a type with a label, in the object's own namespace: none, one, or the names if there
    /// are several.
    ///
    /// # Errors
    ///
    /// As [`RelatedObjects::get`].
    pub fn list_by_label<T>(&self, name: &str, value: &str) -> Result<Lookup<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let watched = self.watched(&T::group(&()), &T::kind(&()))?.into_iter();
        let has = |object: &DynamicObject| object.labels().get(name).is_some_and(|it| it == value);
        let label = LabelPattern::new(name, value);
        let candidates = watched.flat_map(|watched| watched.store.in_namespace(self.namespace));
        let candidates = candidates.filter(|cached| cached.may_have_label(&label));
        let found = candidates.map(|cached| cached.decompress()).filter(has);
        // An object that several watches deliver counts once.
        let found: BTreeMap<_, _> = found.map(|object| (object.name_any(), object)).collect();
        let found: Vec<_> = found.into_values().collect();
        match found.as_slice() {
            [] => Ok(Lookup::None),
            [one] => Ok(Lookup::One(read(one)?)),
            many => {
                let mut names: Vec<_> = many.iter().map(|object| object.name_any()).collect();
                names.sort_unstable();
                Ok(Lookup::Many(names))
            }
        }
    }

    /// Returns the values of the objects of a type [under any of these index keys](Watch::index_by), in all
    /// namespaces, ordered by namespace and name. Each object occurs once.
    ///
    /// # Errors
    ///
    /// No watch is on that type, or its values are not of the type `T`.
    pub fn by_index<T: Send + Sync + 'static>(
        &self,
        resource: &ApiResource,
        keys: &[String],
    ) -> Result<Vec<Arc<T>>, ReconcileError> {
        let watched = self.watched(&resource.group, &resource.kind)?;
        // An object that several watches deliver counts once.
        let found = watched.into_iter().flat_map(|watched| watched.values(keys));
        let found: BTreeMap<_, _> = found.collect();
        let values = found
            .into_values()
            .map(|values| values.into_any().downcast());
        values.collect::<Result<_, _>>().map_err(|_| {
            let message = format!(
                "the value that the `Watch` on {} stores is not a {}; request the type that `Watch::index_by` returns",
                resource.kind,
                std::any::type_name::<T>()
            );
            ReconcileError::Permanent {
                reason: "RelatedTypeMismatch",
                message,
            }
        })
    }

    /// Returns the caches of the watches on a type.
    fn watched(&self, group: &str, kind: &str) -> Result<Vec<&RelatedCache>, ReconcileError> {
        let is_it = |watch: &Watch| watch.resource.kind == kind && watch.resource.group == group;
        let watched = self.watches.iter().zip(self.watched);
        let watched = watched.filter_map(|(watch, watched)| is_it(watch).then_some(watched));
        let watched: Vec<_> = watched.collect();
        if watched.is_empty() {
            let message = format!(
                "the operator reads a {kind} but does not watch that kind; add a `Watch` on it"
            );
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
        message: format!("'{}' cannot be deserialized: {error}", object.name_any()),
    })
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, keys: &[&str], value: &str) -> Arc<DynamicObject> {
        let metadata = json!({"name": name, "namespace": "n"});
        let object = json!({"metadata": metadata, "keys": keys, "told": value});
        Arc::new(serde_json::from_value(object).expect("an object"))
    }

    fn watch() -> Watch {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"));
        Watch::dynamic(resource, |_| Vec::new()).index_by(|object: &Value| {
            let keys = object["keys"].as_array().into_iter().flatten();
            let keys = keys.filter_map(Value::as_str).map(String::from);
            (keys.collect(), object["told"].to_string())
        })
    }

    #[test]
    fn a_change_returns_the_index_keys_whose_content_has_changed() {
        let (watch, watched) = (watch(), RelatedCache::default());
        let states = [
            None,
            Some(object("a", &["k", "l"], "it")),
            Some(object("a", &["k", "l"], "it")),
            Some(object("a", &["l", "m"], "it")),
            Some(object("a", &["l", "n"], "else")),
            Some(object("a", &[], "else")),
            Some(object("a", &["l"], "else")),
            None,
        ];
        let changed = states.windows(2).map(|states| {
            let (before, after) = (states[0].as_ref(), states[1].as_ref());
            watched.on_change(&watch, &UpdateEvent { before, after })
        });
        let changed: Vec<_> = changed.map(|keys| keys.concat()).collect();
        assert_eq!(changed, ["kl", "", "km", "lmn", "ln", "l", "l"]);
        let keyed = watched.keyed.lock();
        assert!(keyed.keys_by_object.is_empty() && keyed.values.is_empty());
    }

    #[test]
    fn an_object_under_several_index_keys_is_returned_once() {
        let watches = [watch()];
        let caches = [RelatedCache::default()];
        for object in [
            object("b", &["k"], "1"),
            object("a", &["k", "l"], "2"),
            object("c", &["m"], "3"),
        ] {
            let (before, after) = (None, Some(&object));
            let keys = caches[0].on_change(&watches[0], &UpdateEvent { before, after });
            assert!(!keys.is_empty());
        }
        let related = RelatedObjects {
            watches: &watches,
            watched: &caches,
            namespace: "",
        };
        let (resource, keys) = (&watches[0].resource, ["k", "l"].map(String::from));
        let found = related
            .by_index::<String>(resource, &keys)
            .expect("they are watched");
        assert_eq!(
            found.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
            ["\"2\"", "\"1\""]
        );
        let error = related
            .by_index::<u8>(resource, &keys)
            .expect_err("it is of another type");
        assert!(error.to_string().contains("is not a u8"), "{error}");
    }
}
