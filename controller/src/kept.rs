//! The objects that watches have brought, as compressed text: as trees they take many times as much, and between
//! two rounds nobody looks at them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;
use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

use crate::objects::resource_version;

/// An object by its namespace and name.
pub(crate) type ObjectKey = (String, String);

pub(crate) fn key_of(object: &DynamicObject) -> ObjectKey {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// What objects of one type have in common: the text of one of them. Each is kept as what differs from it, which
/// is little where they have been made by the same hands. Shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictionary(Arc<OnceLock<Box<[u8]>>>);

/// An object as compressed text, with what is asked of it most often.
#[derive(Debug)]
pub(crate) struct CompressedObject {
    packed: Box<[u8]>,
    pattern: Dictionary,
    uid: Box<str>,
    version: Option<u64>,
}

impl CompressedObject {
    pub(crate) fn compress(object: &DynamicObject, pattern: &Dictionary) -> Self {
        let text = serde_json::to_vec(object).expect("an object is JSON");
        let common = pattern.0.get_or_init(|| text.clone().into());
        Self {
            packed: compress_prepend_size_with_dict(&text, common).into(),
            pattern: pattern.clone(),
            uid: object.uid().unwrap_or_default().into(),
            version: resource_version(object),
        }
    }

    /// The object itself.
    pub(crate) fn decompress(&self) -> DynamicObject {
        serde_json::from_slice(&self.text()).expect("it was written from one")
    }

    /// Another state of it, or whatever else is like it.
    pub(crate) fn compress_with_same_dictionary(&self, object: &DynamicObject) -> Self {
        Self::compress(object, &self.pattern)
    }

    fn text(&self) -> Vec<u8> {
        let common = self.pattern.0.get().map(|text| &**text);
        let text = decompress_size_prepended_with_dict(&self.packed, common.unwrap_or_default());
        text.expect("it was compressed with the same pattern")
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether it is a later state of the same object.
    pub(crate) fn is_later_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version > other.version
    }

    /// Whether it is the same object in the same state.
    pub(crate) fn is_same_state_as(&self, other: &Self) -> bool {
        self.is_state(&other.uid, other.version)
    }

    /// Whether it is the state of an object that is at hand.
    pub(crate) fn is_version_of(&self, object: &DynamicObject) -> bool {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        self.is_state(uid, resource_version(object))
    }

    fn is_state(&self, uid: &str, version: Option<u64>) -> bool {
        &*self.uid == uid && self.version.is_some() && self.version == version
    }

    /// Whether it is the same in every respect.
    pub(crate) fn has_same_content_as(&self, other: &Self) -> bool {
        // Equal texts are compressed to the same.
        let is_alike = Arc::ptr_eq(&self.pattern.0, &other.pattern.0);
        is_alike && self.packed == other.packed
    }

    /// Whether it may carry a label. Where that is denied, it does not.
    pub(crate) fn may_have_label(&self, label: &LabelPattern) -> bool {
        let text = self.text();
        String::from_utf8_lossy(&text).contains(&label.0)
    }
}

/// A label as it stands in a text: what can be in one needs no escape.
pub(crate) struct LabelPattern(String);

impl LabelPattern {
    pub(crate) fn new(name: &str, value: &str) -> Self {
        Self(format!("\"{name}\":\"{value}\""))
    }
}

/// Many of them.
pub(crate) type Objects = HashMap<ObjectKey, Arc<CompressedObject>>;

/// What a watch has brought so far; shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    objects: Arc<Mutex<Objects>>,
    pattern: Dictionary,
}

impl Store {
    /// One of objects like others.
    pub(crate) fn with_dictionary(pattern: Dictionary) -> Self {
        Self {
            objects: Arc::default(),
            pattern,
        }
    }

    /// An object as it is to be kept.
    pub(crate) fn compress(&self, object: &DynamicObject) -> Arc<CompressedObject> {
        Arc::new(CompressedObject::compress(object, &self.pattern))
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<CompressedObject>> {
        self.objects().get(key).cloned()
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<CompressedObject>> {
        self.objects().values().cloned().collect()
    }

    /// Those in a namespace, in no order.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<CompressedObject>> {
        let objects = self.objects();
        let within = objects.iter().filter(|(key, _)| key.0 == namespace);
        within.map(|(_, kept)| Arc::clone(kept)).collect()
    }

    /// Takes the state of an object, and gives the one before.
    pub(crate) fn put(
        &self,
        key: ObjectKey,
        kept: Arc<CompressedObject>,
    ) -> Option<Arc<CompressedObject>> {
        self.objects().insert(key, kept)
    }

    pub(crate) fn remove(&self, key: &ObjectKey) {
        self.objects().remove(key);
    }

    /// Takes all there are, and gives those that were before.
    pub(crate) fn replace(&self, all: Objects) -> Objects {
        std::mem::replace(&mut *self.objects(), all)
    }

    /// The keys of all, at this moment.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.objects().keys().cloned().collect()
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        let objects = self.objects.lock();
        objects.unwrap_or_else(PoisonError::into_inner)
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
        let pattern = Dictionary::default();
        let kept = CompressedObject::compress(&object, &pattern);
        assert_eq!(kept.decompress(), object);
        let mut other = object.clone();
        other.metadata.name = Some("b".to_owned());
        other.data["spec"] = json!(["nothing", "of", "the", "kind"]);
        assert_eq!(
            kept.compress_with_same_dictionary(&other).decompress(),
            other
        );
        assert!(
            !kept
                .compress_with_same_dictionary(&other)
                .has_same_content_as(&kept)
        );
        assert!(
            kept.compress_with_same_dictionary(&object)
                .has_same_content_as(&kept)
        );
        assert_eq!(kept.uid(), "1");
        assert!(kept.may_have_label(&LabelPattern::new("app.kubernetes.io/name", "x")));
        assert!(!kept.may_have_label(&LabelPattern::new("app.kubernetes.io/name", "y")));
        let mut later = object.clone();
        later.metadata.resource_version = Some("11".to_owned());
        assert!(
            kept.compress_with_same_dictionary(&later)
                .is_later_than(&kept)
        );
        assert!(!kept.is_later_than(&kept.compress_with_same_dictionary(&later)));
        later.metadata.uid = Some("2".to_owned());
        assert!(
            !kept
                .compress_with_same_dictionary(&later)
                .is_later_than(&kept),
            "another object"
        );
    }
}
