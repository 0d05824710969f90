//! The objects that watches have brought, as text: as trees they take several times as much, and between two
//! rounds nobody looks at them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;

use crate::objects::version;

/// An object by its namespace and name.
pub(crate) type Key = (String, String);

pub(crate) fn key_of(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// An object as text, with what is asked of it most often.
#[derive(Debug)]
pub(crate) struct Kept {
    text: Box<str>,
    uid: Box<str>,
    version: Option<u64>,
}

impl Kept {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let text = serde_json::to_string(object).expect("an object is JSON");
        Self {
            text: text.into(),
            uid: object.uid().unwrap_or_default().into(),
            version: version(object),
        }
    }

    /// The object itself.
    pub(crate) fn open(&self) -> DynamicObject {
        serde_json::from_str(&self.text).expect("it was written from one")
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether it is a later state of the same object.
    pub(crate) fn is_later_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version > other.version
    }

    /// Whether it is the same in every respect.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// Whether it may carry a label. Where that is denied, it does not.
    pub(crate) fn may_carry(&self, label: &Label) -> bool {
        self.text.contains(&label.0)
    }
}

/// A label as it stands in a text: what can be in one needs no escape.
pub(crate) struct Label(String);

impl Label {
    pub(crate) fn new(name: &str, value: &str) -> Self {
        Self(format!("\"{name}\":\"{value}\""))
    }
}

/// Many of them.
pub(crate) type Objects = HashMap<Key, Arc<Kept>>;

/// What a watch has brought so far; shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store(Arc<Mutex<Objects>>);

impl Store {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Kept>> {
        self.objects().get(key).cloned()
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Kept>> {
        self.objects().values().cloned().collect()
    }

    /// Those in a namespace, in no order.
    pub(crate) fn within(&self, namespace: &str) -> Vec<Arc<Kept>> {
        let objects = self.objects();
        let within = objects.iter().filter(|(key, _)| key.0 == namespace);
        within.map(|(_, kept)| Arc::clone(kept)).collect()
    }

    /// Takes the state of an object, and gives the one before.
    pub(crate) fn put(&self, key: Key, kept: Arc<Kept>) -> Option<Arc<Kept>> {
        self.objects().insert(key, kept)
    }

    pub(crate) fn remove(&self, key: &Key) {
        self.objects().remove(key);
    }

    /// Takes all there are, and gives those that were before.
    pub(crate) fn replace(&self, all: Objects) -> Objects {
        std::mem::replace(&mut *self.objects(), all)
    }

    /// The keys of all, at this moment.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.objects().keys().cloned().collect()
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_kept_whole() {
        let object = json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "1", "resourceVersion": "10",
                "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:06Z",
                "labels": {"app.kubernetes.io/name": "x"}, "finalizers": ["e.com/f"],
                "managedFields": [{"manager": "lockstep", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {"text": "\"quoted\"\n\u{1f980}", "number": 0.1, "large": 9_007_199_254_740_993_u64, "null": null},
        });
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let kept = Kept::of(&object);
        assert_eq!(kept.open(), object);
        assert_eq!(kept.uid(), "1");
        assert!(kept.may_carry(&Label::new("app.kubernetes.io/name", "x")));
        assert!(!kept.may_carry(&Label::new("app.kubernetes.io/name", "y")));
        let mut later = object.clone();
        later.metadata.resource_version = Some("11".to_owned());
        assert!(Kept::of(&later).is_later_than(&kept));
        assert!(!kept.is_later_than(&Kept::of(&later)));
        later.metadata.uid = Some("2".to_owned());
        assert!(!Kept::of(&later).is_later_than(&kept), "another object");
    }
}
