//! State of the watches on children that exist only in the namespaces of their owners.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::cache::capacity::release_unused;
use crate::cache::counted_set::CountedSet;
use crate::cache::object_key::ObjectKey;
use crate::children::{NamespacesOf, OwnedType};

/// Watches of a controller on the types of children that are watched by namespace.
pub(crate) struct NamespaceWatches {
    /// By the index of the type.
    by_type: BTreeMap<usize, NamespacesOfType>,
    /// If true, the initial list of the owners is complete.
    is_listed: watch::Sender<bool>,
}

/// Namespaces in which the children of one type are watched.
pub(crate) struct NamespacesOfType {
    namespaces_of: NamespacesOf,
    owners: Mutex<Owners>,
    needed: watch::Sender<BTreeSet<String>>,
    /// By namespace.
    watches: watch::Sender<BTreeMap<String, NamespaceState>>,
}

/// Namespaces by owner, and of all owners.
#[derive(Default)]
struct Owners {
    by_key: HashMap<ObjectKey, BTreeSet<String>>,
    namespaces: CountedSet<String>,
}

/// State of the watch of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamespaceState {
    /// The initial list is complete. A watch that is interrupted later keeps this state, since its cache stays.
    Listed,
    /// There has never been a complete list, for this reason.
    Failed(String),
}

/// Reason why the children of an owner are not known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// A watch has just started. Its list, or its failure, enqueues the owner again.
    Pending,
    /// A watch cannot start.
    Failed(String),
}

impl NamespaceWatches {
    pub(crate) fn of(types: &[OwnedType]) -> Self {
        let by_namespace = types.iter().enumerate().filter_map(|(at, type_)| {
            let namespaces_of = type_.namespaces_of.clone()?;
            let of_type = NamespacesOfType {
                namespaces_of,
                owners: Mutex::default(),
                needed: watch::Sender::default(),
                watches: watch::Sender::default(),
            };
            Some((at, of_type))
        });
        Self {
            by_type: by_namespace.collect(),
            is_listed: watch::Sender::default(),
        }
    }

    /// Returns the namespaces of a type, or none if it is watched everywhere.
    pub(crate) fn of_type(&self, type_: usize) -> Option<&NamespacesOfType> {
        self.by_type.get(&type_)
    }

    /// Records the current state of an owner; null if it is gone.
    pub(crate) fn set_owner(&self, key: &ObjectKey, owner: &Value) {
        for of_type in self.by_type.values() {
            of_type.set_owner(key, owner);
        }
    }

    /// Returns true if there is a type that is watched by namespace.
    pub(crate) fn is_any(&self) -> bool {
        !self.by_type.is_empty()
    }

    /// Records that the initial list of the owners is complete.
    pub(crate) fn set_owners_listed(&self) {
        self.is_listed.send_replace(true);
    }

    /// Waits until the watches of all namespaces that owners need at the start have a list or have failed.
    pub(crate) async fn started(&self, of_type: &NamespacesOfType) {
        let mut is_listed = self.is_listed.subscribe();
        // The senders live as long as this.
        let _ = is_listed.wait_for(|is_listed| *is_listed).await;
        let (mut needed, mut watches) = (of_type.needed(), of_type.watches.subscribe());
        // An owner that is deleted meanwhile takes its namespace with it.
        loop {
            let all = needed.borrow_and_update().clone();
            let started = watches.borrow_and_update().clone();
            if all.iter().all(|namespace| started.contains_key(namespace)) {
                return;
            }
            tokio::select! {
                _ = needed.changed() => {}
                _ = watches.changed() => {}
            }
        }
    }

    /// Returns why the children of an owner are not known, if they are not.
    pub(crate) fn unlisted(&self, key: &ObjectKey, types: &[OwnedType]) -> Option<Unlisted> {
        let mut pending = None;
        for (type_, of_type) in &self.by_type {
            let namespaces = of_type.owners.lock().by_key.get(key).cloned();
            let watches = of_type.watches.borrow();
            for namespace in namespaces.unwrap_or_default() {
                match watches.get(&namespace) {
                    Some(NamespaceState::Listed) => {}
                    Some(NamespaceState::Failed(reason)) => {
                        let plural = &types[*type_].resource.plural;
                        let message = format!(
                            "the watch on {plural} in the namespace `{namespace}` {reason}"
                        );
                        return Some(Unlisted::Failed(message));
                    }
                    None => pending = Some(Unlisted::Pending),
                }
            }
        }
        pending
    }
}

impl NamespacesOfType {
    /// Returns the namespaces that owners need now.
    pub(crate) fn needed(&self) -> watch::Receiver<BTreeSet<String>> {
        self.needed.subscribe()
    }

    /// Returns the namespaces in which an owner has children.
    pub(crate) fn namespaces_of(&self, owner: &Value) -> BTreeSet<String> {
        let namespaces = catch_unwind(AssertUnwindSafe(|| (self.namespaces_of.0)(owner)));
        let namespaces = namespaces.unwrap_or_else(|_| {
            let name = &owner["metadata"]["name"];
            tracing::error!(%name, "the namespaces of the children are unknown: the function that computes them panicked");
            Vec::new()
        });
        namespaces.into_iter().filter(|it| !it.is_empty()).collect()
    }

    /// Records that the list of a namespace is complete. Returns the owners in it if that is new.
    pub(crate) fn set_listed(&self, namespace: &str) -> Vec<ObjectKey> {
        self.set(namespace, NamespaceState::Listed)
    }

    /// Records why the watch of a namespace cannot start. Returns the owners in it if that is new.
    pub(crate) fn set_failed(&self, namespace: &str, reason: String) -> Vec<ObjectKey> {
        if self.watches.borrow().get(namespace) == Some(&NamespaceState::Listed) {
            return Vec::new();
        }
        self.set(namespace, NamespaceState::Failed(reason))
    }

    /// Records that the watch of a namespace has ended.
    pub(crate) fn set_ended(&self, namespace: &str) {
        self.watches
            .send_modify(|watches| drop(watches.remove(namespace)));
    }

    fn set_owner(&self, key: &ObjectKey, owner: &Value) {
        let namespaces = if owner.is_null() {
            BTreeSet::new()
        } else {
            self.namespaces_of(owner)
        };
        let mut owners = self.owners.lock();
        let before = owners.by_key.remove(key).unwrap_or_default();
        if owners.namespaces.replace(&before, &namespaces) {
            let needed = owners.namespaces.items().cloned().collect();
            self.needed.send_replace(needed);
        }
        if namespaces.is_empty() {
            release_unused(&mut owners.by_key);
        } else {
            owners.by_key.insert(key.clone(), namespaces);
        }
    }

    fn set(&self, namespace: &str, state: NamespaceState) -> Vec<ObjectKey> {
        let is_changed = self.watches.send_if_modified(|watches| {
            watches.insert(namespace.to_owned(), state.clone()) != Some(state)
        });
        if !is_changed {
            return Vec::new();
        }
        let owners = self.owners.lock();
        let within = owners
            .by_key
            .iter()
            .filter(|(_, namespaces)| namespaces.contains(namespace));
        within.map(|(key, _)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;

    fn types() -> Vec<OwnedType> {
        let named = |owner: &Value| {
            let namespace = owner["spec"]["namespace"].as_str();
            namespace.map(String::from).into_iter().collect()
        };
        vec![
            OwnedType::namespaced::<ConfigMap>(),
            OwnedType::namespaced::<Secret>().watch_in(named),
        ]
    }

    fn owner(namespace: &str) -> Value {
        json!({"metadata": {"name": "o"}, "spec": {"namespace": namespace}})
    }

    #[test]
    fn a_namespace_is_needed_while_an_owner_has_children_in_it() {
        let watches = NamespaceWatches::of(&types());
        assert!(watches.of_type(0).is_none(), "watched everywhere");
        let secrets = watches.of_type(1).expect("watched by namespace");
        let mut needed = secrets.needed();
        let (a, b) = (ObjectKey::new("", "a"), ObjectKey::new("", "b"));
        for (key, object, expected, is_changed) in [
            (&a, owner("x"), vec!["x"], true),
            (&b, owner("x"), vec!["x"], false),
            (&a, owner("y"), vec!["x", "y"], true),
            (&b, Value::Null, vec!["y"], true),
            (&a, json!({}), vec![], true),
        ] {
            watches.set_owner(key, &object);
            let has_changed = needed.has_changed().expect("the sender lives");
            assert_eq!(has_changed, is_changed, "{key} {object}");
            let now = needed.borrow_and_update().clone();
            assert_eq!(now.iter().collect::<Vec<_>>(), expected, "{key} {object}");
        }
    }

    #[test]
    fn an_owner_is_told_why_its_children_are_unknown() {
        let types = types();
        let watches = NamespaceWatches::of(&types);
        let secrets = watches.of_type(1).expect("watched by namespace");
        let key = ObjectKey::new("", "a");
        let unlisted = || watches.unlisted(&key, &types);
        assert_eq!(unlisted(), None, "it has no children");
        watches.set_owner(&key, &owner("x"));
        assert_eq!(unlisted(), Some(Unlisted::Pending));
        let forbidden = "is forbidden".to_owned();
        assert_eq!(
            secrets.set_failed("x", forbidden.clone()),
            std::slice::from_ref(&key)
        );
        assert!(
            secrets.set_failed("x", forbidden.clone()).is_empty(),
            "not new"
        );
        let message = "the watch on secrets in the namespace `x` is forbidden".to_owned();
        assert_eq!(unlisted(), Some(Unlisted::Failed(message)));
        assert_eq!(secrets.set_listed("x"), std::slice::from_ref(&key));
        assert!(
            secrets.set_failed("x", forbidden).is_empty(),
            "its cache stays"
        );
        assert_eq!(unlisted(), None);
        secrets.set_ended("x");
        assert_eq!(unlisted(), Some(Unlisted::Pending));
    }

    #[tokio::test]
    async fn the_start_ends_when_each_namespace_has_a_list_or_has_failed() {
        let watches = NamespaceWatches::of(&types());
        let secrets = watches.of_type(1).expect("watched by namespace");
        watches.set_owner(&ObjectKey::new("", "a"), &owner("x"));
        watches.set_owner(&ObjectKey::new("", "b"), &owner("y"));
        let mut started = std::pin::pin!(watches.started(secrets));
        let mut is_over = || futures::FutureExt::now_or_never(started.as_mut()).is_some();
        secrets.set_listed("x");
        secrets.set_failed("y", "is forbidden".to_owned());
        assert!(!is_over(), "more owners may be listed");
        watches.set_owner(&ObjectKey::new("", "c"), &owner("z"));
        watches.set_owners_listed();
        assert!(!is_over(), "the watch of z has not started");
        secrets.set_listed("z");
        assert!(is_over());

        // The owners in two namespaces are deleted, one before its watch has started, and one after its watch has failed.
        let watches = NamespaceWatches::of(&types());
        let secrets = watches.of_type(1).expect("watched by namespace");
        let (a, b) = (ObjectKey::new("", "a"), ObjectKey::new("", "b"));
        watches.set_owner(&a, &owner("x"));
        watches.set_owner(&b, &owner("y"));
        watches.set_owners_listed();
        let mut started = std::pin::pin!(watches.started(secrets));
        let mut is_over = || futures::FutureExt::now_or_never(started.as_mut()).is_some();
        secrets.set_failed("y", "is forbidden".to_owned());
        assert!(!is_over());
        watches.set_owner(&b, &Value::Null);
        secrets.set_ended("y");
        assert!(!is_over());
        watches.set_owner(&a, &Value::Null);
        assert!(is_over());
    }
}
