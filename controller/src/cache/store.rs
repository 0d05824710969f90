//! Object store: LZ4-compressed JSON. As trees the objects would take many times the memory, and they are rarely
//! read between two reconciliations.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kube::ResourceExt;
use kube::api::DynamicObject;
use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};
use parking_lot::Mutex;

use crate::cache::capacity::release_unused;
use crate::cache::object_key::ObjectKey;
use crate::dynamic_object::{UntypedObject, resource_version};

/// LZ4 dictionary of one type: the text of one of its objects. Each object is compressed to its difference from
/// it, which is small if the same client has created both. Clones share the dictionary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictionary(Arc<OnceLock<Box<[u8]>>>);

/// An object as compressed text, with the fields that are read most often.
#[derive(Debug)]
pub(crate) struct CompressedObject {
    packed: Box<[u8]>,
    pattern: Dictionary,
    uid: Box<str>,
    version: Option<u64>,
    /// True if the last validation of the object in this state took so little time that it may delay other tasks.
    is_quickly_validated: AtomicBool,
}

impl CompressedObject {
    pub(crate) fn compress(object: &DynamicObject, pattern: &Dictionary) -> Self {
        let text = serde_json::to_vec(object).expect("an object serializes to JSON");
        let common = pattern.0.get_or_init(|| text.clone().into());
        Self {
            packed: compress_prepend_size_with_dict(&text, common).into(),
            pattern: pattern.clone(),
            uid: object.uid().unwrap_or_default().into(),
            version: resource_version(object),
            is_quickly_validated: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_quickly_validated(&self) -> bool {
        self.is_quickly_validated.load(Ordering::Relaxed)
    }

    pub(crate) fn set_quickly_validated(&self, is_quick: bool) {
        self.is_quickly_validated.store(is_quick, Ordering::Relaxed);
    }

    /// Decompresses the object.
    pub(crate) fn decompress(&self) -> DynamicObject {
        let object: UntypedObject =
            serde_json::from_slice(&self.text()).expect("the text was serialized from an object");
        object.0
    }

    /// Compresses an object with the same dictionary.
    pub(crate) fn compress_with_same_dictionary(&self, object: &DynamicObject) -> Self {
        Self::compress(object, &self.pattern)
    }

    fn text(&self) -> Vec<u8> {
        let common = self.pattern.0.get().map(|text| &**text);
        let text = decompress_size_prepended_with_dict(&self.packed, common.unwrap_or_default());
        text.expect("the text was compressed with the same dictionary")
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns true if it is a later state of the same object.
    pub(crate) fn is_later_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version > other.version
    }

    /// Returns true if it is the same state of the same object.
    pub(crate) fn is_same_state_as(&self, other: &Self) -> bool {
        self.is_state(&other.uid, other.version)
    }

    /// Returns true if it is the state of this object.
    pub(crate) fn is_version_of(&self, object: &DynamicObject) -> bool {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        self.is_state(uid, resource_version(object))
    }

    /// Returns true if it is this state of an object, or a later one.
    pub(crate) fn is_at_least(&self, object: &DynamicObject) -> bool {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let version = resource_version(object);
        &*self.uid == uid && version.is_some() && self.version >= version
    }

    fn is_state(&self, uid: &str, version: Option<u64>) -> bool {
        &*self.uid == uid && self.version.is_some() && self.version == version
    }

    /// Returns true if it is equal in every field.
    pub(crate) fn has_same_content_as(&self, other: &Self) -> bool {
        // Equal texts are compressed to equal bytes.
        let is_alike = Arc::ptr_eq(&self.pattern.0, &other.pattern.0);
        is_alike && self.packed == other.packed
    }

    /// Returns true if the object may have a label. If it returns false, the object does not have it.
    pub(crate) fn may_have_label(&self, label: &LabelPattern) -> bool {
        let text = self.text();
        String::from_utf8_lossy(&text).contains(&label.0)
    }
}

/// A label as JSON text: the characters that a label may contain need no escape.
pub(crate) struct LabelPattern(String);

impl LabelPattern {
    pub(crate) fn new(name: &str, value: &str) -> Self {
        Self(format!("\"{name}\":\"{value}\""))
    }
}

/// Objects by key.
pub(crate) type Objects = HashMap<ObjectKey, Arc<CompressedObject>>;

/// Objects that a watch has delivered. Clones share the content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    objects: Arc<Mutex<Objects>>,
    pattern: Dictionary,
}

impl Store {
    /// Returns an empty store that uses an existing dictionary.
    pub(crate) fn with_dictionary(pattern: Dictionary) -> Self {
        Self {
            objects: Arc::default(),
            pattern,
        }
    }

    /// Compresses an object with the dictionary of this store.
    pub(crate) fn compress(&self, object: &DynamicObject) -> Arc<CompressedObject> {
        Arc::new(CompressedObject::compress(object, &self.pattern))
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<CompressedObject>> {
        self.objects.lock().get(key).cloned()
    }

    /// Returns all objects, in no particular order.
    pub(crate) fn all(&self) -> Vec<Arc<CompressedObject>> {
        self.objects.lock().values().cloned().collect()
    }

    /// Returns the objects of a namespace, in no particular order.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<CompressedObject>> {
        let objects = self.objects.lock();
        let within = objects
            .iter()
            .filter(|(key, _)| key.namespace() == namespace);
        within
            .map(|(_, compressed)| Arc::clone(compressed))
            .collect()
    }

    /// Stores the state of an object and returns the previous one.
    pub(crate) fn put(
        &self,
        key: ObjectKey,
        compressed: Arc<CompressedObject>,
    ) -> Option<Arc<CompressedObject>> {
        self.objects.lock().insert(key, compressed)
    }

    pub(crate) fn remove(&self, key: &ObjectKey) -> Option<Arc<CompressedObject>> {
        let mut objects = self.objects.lock();
        let removed = objects.remove(key);
        release_unused(&mut objects);
        removed
    }

    /// Releases the memory for objects that were removed.
    pub(crate) fn shrink_to_fit(&self) {
        self.objects.lock().shrink_to_fit();
    }

    /// Replaces all objects, or those of one namespace, and returns the previous ones.
    pub(crate) fn replace(&self, namespace: Option<&str>, all: Objects) -> Objects {
        let mut objects = self.objects.lock();
        let Some(namespace) = namespace else {
            return std::mem::replace(&mut *objects, all);
        };
        let before = objects
            .extract_if(|key, _| key.namespace() == namespace)
            .collect();
        objects.extend(all);
        before
    }

    /// Returns all objects with their keys, in no particular order.
    pub(crate) fn entries(&self) -> Vec<(ObjectKey, Arc<CompressedObject>)> {
        let objects = self.objects.lock();
        let entries = objects.iter();
        entries
            .map(|(key, compressed)| (key.clone(), Arc::clone(compressed)))
            .collect()
    }

    /// Returns the current keys, or those of one namespace.
    pub(crate) fn keys(&self, namespace: Option<&str>) -> Vec<ObjectKey> {
        let objects = self.objects.lock();
        let keys = objects.keys();
        keys.filter(|key| namespace.is_none_or(|namespace| key.namespace() == namespace))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compression_keeps_the_whole_object() {
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
        let compressed = CompressedObject::compress(&object, &pattern);
        assert_eq!(compressed.decompress(), object);
        let mut other = object.clone();
        other.metadata.name = Some("b".to_owned());
        other.data["spec"] = json!(["nothing", "of", "the", "kind"]);
        assert_eq!(
            compressed
                .compress_with_same_dictionary(&other)
                .decompress(),
            other
        );
        assert!(
            !compressed
                .compress_with_same_dictionary(&other)
                .has_same_content_as(&compressed)
        );
        assert!(
            compressed
                .compress_with_same_dictionary(&object)
                .has_same_content_as(&compressed)
        );
        assert_eq!(compressed.uid(), "1");
        assert!(compressed.may_have_label(&LabelPattern::new("app.kubernetes.io/name", "x")));
        assert!(!compressed.may_have_label(&LabelPattern::new("app.kubernetes.io/name", "y")));
        let mut later = object.clone();
        later.metadata.resource_version = Some("11".to_owned());
        assert!(
            compressed
                .compress_with_same_dictionary(&later)
                .is_later_than(&compressed)
        );
        assert!(!compressed.is_later_than(&compressed.compress_with_same_dictionary(&later)));
        later.metadata.uid = Some("2".to_owned());
        assert!(
            !compressed
                .compress_with_same_dictionary(&later)
                .is_later_than(&compressed),
            "another object"
        );
    }
}
