//! Bidirectional index of references between objects.

use std::collections::BTreeSet;
use std::hash::Hash;

use kube::ResourceExt;
use kube::api::DynamicObject;
use parking_lot::Mutex;
use serde_json::Value;

use crate::cache::bidirectional_map::BidirectionalMap;
use crate::predicate::UpdateEvent;
use crate::watch::dependency::{Reference, Watch};

/// Target of a reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ReferenceTarget {
    /// Index of the watch in the operator's list.
    pub(crate) watch: usize,
    /// Namespace of the referring object. Empty for an index key, which is the same in all namespaces.
    pub(crate) namespace: String,
    pub(crate) reference: Reference,
}

/// Bidirectional index of referring objects and their targets.
pub(crate) struct ReferenceIndex<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    targets: BidirectionalMap<K, ReferenceTarget>,
    /// Objects whose references are unknown.
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
    /// Replaces the targets of an object; an empty set means that it no longer exists. Returns the targets that
    /// were added or removed.
    pub(crate) fn set(&self, key: &K, targets: BTreeSet<ReferenceTarget>) -> Vec<ReferenceTarget> {
        let mut state = self.state.lock();
        state.unclear.remove(key);
        state.targets.set(key, targets)
    }

    /// Records that the references of an object are unknown. Its previous targets are kept.
    pub(crate) fn set_unknown(&self, key: &K) {
        self.state.lock().unclear.insert(key.clone());
    }

    /// Returns true if the references of any object are unknown.
    pub(crate) fn has_unknown(&self) -> bool {
        !self.state.lock().unclear.is_empty()
    }

    /// Returns the objects that refer to a watched object, in its state before or after the change, or to one of
    /// the index keys whose content has changed.
    pub(crate) fn referrers_of(
        &self,
        at: usize,
        change: &UpdateEvent<'_, DynamicObject>,
        keys: impl IntoIterator<Item = String>,
    ) -> BTreeSet<K> {
        let state = self.state.lock();
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
}

/// Returns the targets of an object for all watches.
///
/// None if they are unknown.
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

fn target(at: usize, namespace: &str, reference: Reference) -> ReferenceTarget {
    let namespace = match reference {
        Reference::IndexKey(_) => String::new(),
        Reference::Name(_) | Reference::Label(..) => namespace.to_owned(),
    };
    ReferenceTarget {
        watch: at,
        namespace,
        reference,
    }
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
    fn referring_objects_are_found_by_name_label_and_index_key() {
        let referrers = ReferenceIndex::default();
        let named = |name: &str| target(0, "n", Reference::Name(name.to_owned()));
        let labelled = target(0, "n", Reference::Label("app".to_owned(), "db".to_owned()));
        referrers.set(&"a", BTreeSet::from([named("s")]));
        referrers.set(&"b", BTreeSet::from([named("s"), named("t")]));
        referrers.set(&"c", BTreeSet::from([labelled]));
        let (s, t) = (object("s", &json!({})), object("t", &json!({"app": "db"})));
        assert_eq!(found(&referrers, None, Some(&s)), ["a", "b"]);
        assert_eq!(found(&referrers, Some(&t), None), ["b", "c"]);
        // It loses its label, so the object that referred to the label is affected.
        let bare = object("t", &json!({}));
        assert_eq!(found(&referrers, Some(&t), Some(&bare)), ["b", "c"]);
        let changed = referrers.set(&"b", BTreeSet::from([named("t"), named("u")]));
        assert_eq!(changed, [named("s"), named("u")]);
        assert_eq!(found(&referrers, None, Some(&s)), ["a"]);
        // The namespace of the referring object does not matter.
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
        assert!(
            referrers.state.lock().targets.is_empty(),
            "no entry is left"
        );
    }
}
