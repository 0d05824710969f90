//! Who refers to what, both ways.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::index::Index;
use crate::predicate::Change;
use crate::watch::{Reference, Watch};

/// What is referred to: the place of a watch in the operator's list, a namespace, and how.
pub(crate) type Target = (usize, String, Reference);

/// Who refers to what, both ways.
pub(crate) struct Referrers<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    targets: Index<K, Target>,
    /// Those of which it cannot be told what they refer to.
    unclear: BTreeSet<K>,
}

impl<K> Default for Referrers<K> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                targets: Index::default(),
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
        state.targets.set(key, targets)
    }

    /// Takes that it cannot be told what an object now refers to. What it did refer to stands.
    pub(crate) fn set_unclear(&self, key: &K) {
        self.state().unclear.insert(key.clone());
    }

    /// Whether there are some of which it cannot be told what they refer to.
    pub(crate) fn are_unclear(&self) -> bool {
        !self.state().unclear.is_empty()
    }

    /// Those that refer to an object that a watch has brought, as it is or as it was, or to one of the keys under
    /// which there is something else now.
    pub(crate) fn of(
        &self,
        at: usize,
        change: &Change<'_, DynamicObject>,
        keys: impl IntoIterator<Item = String>,
    ) -> BTreeSet<K> {
        let state = self.state();
        let mut found = BTreeSet::new();
        for key in keys {
            let target = target(at, "", Reference::Keyed(key));
            found.extend(state.targets.get(&target).cloned());
        }
        for object in [change.before, change.after].into_iter().flatten() {
            let labels = object.labels().iter();
            let labels =
                labels.map(|(name, value)| Reference::Labelled(name.clone(), value.clone()));
            let name = Reference::Named(object.name_any());
            for reference in labels.chain([name]) {
                let namespace = object.namespace().unwrap_or_default();
                let target = target(at, &namespace, reference);
                found.extend(state.targets.get(&target).cloned());
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
        targets.extend(references.map(|reference| target(at, namespace, reference)));
    }
    Some(targets)
}

/// A key is the same in all namespaces.
fn target(at: usize, namespace: &str, reference: Reference) -> Target {
    let namespace = match reference {
        Reference::Keyed(_) => String::new(),
        Reference::Named(_) | Reference::Labelled(..) => namespace.to_owned(),
    };
    (at, namespace, reference)
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
        let change = Change { before, after };
        referrers.of(0, &change, Vec::new()).into_iter().collect()
    }

    #[test]
    fn those_that_refer_to_an_object_are_found_by_its_name_its_labels_and_its_keys() {
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
        // Whatever the namespace of who refers to it.
        let keyed = target(0, "elsewhere", Reference::Keyed("k".to_owned()));
        referrers.set(&"d", BTreeSet::from([keyed]));
        let k = object("k", &json!({}));
        let by_key = |key: &str| {
            let change = Change {
                before: None,
                after: Some(&k),
            };
            referrers.of(0, &change, vec![key.to_owned()])
        };
        assert_eq!(by_key("k"), BTreeSet::from(["d"]));
        assert_eq!(by_key("l"), BTreeSet::new());
        for key in ["a", "b", "c", "d"] {
            referrers.set(&key, BTreeSet::new());
        }
        assert!(referrers.state().targets.is_empty(), "nothing is kept");
    }
}
