//! Who refers to what, both ways.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::index::BidirectionalMap;
use crate::predicate::UpdateEvent;
use crate::watch::{Reference, Watch};

/// What is referred to: the place of a watch in the operator's list, a namespace, and how.
pub(crate) type ReferenceTarget = (usize, String, Reference);

/// Who refers to what, both ways.
pub(crate) struct ReferenceIndex<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    targets: BidirectionalMap<K, ReferenceTarget>,
    /// Those of which it cannot be told what they refer to.
    unclear: BTreeSet<K>,
}

impl<K> Default for ReferenceIndex<K> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                targets: BidirectionalMap::default(),
                unclear: BTreeSet::new(),
            }),
        }
    }
}

impl<K: Clone + Ord + Hash> ReferenceIndex<K> {
    /// Takes what an object now refers to; nothing, when it is gone. Gives what has begun or ceased to be referred
    /// to by it.
    pub(crate) fn set(&self, key: &K, targets: BTreeSet<ReferenceTarget>) -> Vec<ReferenceTarget> {
        let mut state = self.state();
        state.unclear.remove(key);
        state.targets.set(key, targets)
    }

    /// Takes that it cannot be told what an object now refers to. What it did refer to stands.
    pub(crate) fn set_unknown(&self, key: &K) {
        self.state().unclear.insert(key.clone());
    }

    /// Whether there are some of which it cannot be told what they refer to.
    pub(crate) fn has_unknown(&self) -> bool {
        !self.state().unclear.is_empty()
    }

    /// Those that refer to an object that a watch has brought, as it is or as it was, or to one of the keys under
    /// which there is something else now.
    pub(crate) fn referrers_of(
        &self,
        at: usize,
        change: &UpdateEvent<'_, DynamicObject>,
        keys: impl IntoIterator<Item = String>,
    ) -> BTreeSet<K> {
        let state = self.state();
        let mut found = BTreeSet::new();
        for key in keys {
            let target = target(at, "", Reference::IndexKey(key));
            found.extend(state.targets.get(&target).cloned());
        }
        for object in [change.before, change.after].into_iter().flatten() {
            let labels = object.labels().iter();
            let labels = labels.map(|(name, value)| Reference::Label(name.clone(), value.clone()));
            let name = Reference::Name(object.name_any());
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
) -> Option<BTreeSet<ReferenceTarget>> {
    let mut targets = BTreeSet::new();
    for (at, watch) in watches.iter().enumerate() {
        let references = watch.references(object)?.into_iter();
        targets.extend(references.map(|reference| target(at, namespace, reference)));
    }
    Some(targets)
}

/// A key is the same in all namespaces.
fn target(at: usize, namespace: &str, reference: Reference) -> ReferenceTarget {
    let namespace = match reference {
        Reference::IndexKey(_) => String::new(),
        Reference::Name(_) | Reference::Label(..) => namespace.to_owned(),
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
        referrers: &ReferenceIndex<&'static str>,
        before: Option<&Arc<DynamicObject>>,
        after: Option<&Arc<DynamicObject>>,
    ) -> Vec<&'static str> {
        let change = UpdateEvent { before, after };
        referrers
            .referrers_of(0, &change, Vec::new())
            .into_iter()
            .collect()
    }

    #[test]
    fn those_that_refer_to_an_object_are_found_by_its_name_its_labels_and_its_keys() {
        let referrers = ReferenceIndex::default();
        let named = |name: &str| (0, "n".to_owned(), Reference::Name(name.to_owned()));
        let labelled = (
            0,
            "n".to_owned(),
            Reference::Label("app".to_owned(), "db".to_owned()),
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
        let keyed = target(0, "elsewhere", Reference::IndexKey("k".to_owned()));
        referrers.set(&"d", BTreeSet::from([keyed]));
        let k = object("k", &json!({}));
        let by_key = |key: &str| {
            let change = UpdateEvent {
                before: None,
                after: Some(&k),
            };
            referrers.referrers_of(0, &change, vec![key.to_owned()])
        };
        assert_eq!(by_key("k"), BTreeSet::from(["d"]));
        assert_eq!(by_key("l"), BTreeSet::new());
        for key in ["a", "b", "c", "d"] {
            referrers.set(&key, BTreeSet::new());
        }
        assert!(referrers.state().targets.is_empty(), "nothing is kept");
    }
}
