//! Objects that are read whatever their creators have written into them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::DynamicResourceScope;
use lockstep_shared_validation::{RawMetadata, RawObject, Tree};
use serde::de::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Object that is read however deep it and its managed fields are nested: one that the parser refuses would fail the list or
/// the watch event in which it is, and with it the objects of all users.
///
/// # Guarantees
///
/// `metadata.managedFields` is skipped, which repeats the nesting of the object. What is deeper than
/// 100 levels is null, and the rule `nesting` then refuses the object.
///
/// An object whose metadata is not readable has only those parts of it that are, and no other field: whatever requires a
/// field reports the object, and nobody acts on it.
///
/// ```
/// use lockstep_controller::CustomObject;
///
/// let deep = format!("{}1{}", r#"{"a":"#.repeat(300), "}".repeat(300));
/// let text = format!(r#"{{"metadata": {{"name": "a"}}, "spec": {deep}}}"#);
/// let object: CustomObject = serde_json::from_str(&text)?;
/// assert_eq!(object.into_inner().metadata.name.as_deref(), Some("a"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CustomObject(DynamicObject);

impl CustomObject {
    /// Returns the object.
    #[must_use]
    pub fn into_inner(self) -> DynamicObject {
        self.0
    }
}

impl<'de> Deserialize<'de> for CustomObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(deserializer)?;
        let mut fields = Fields::from(object.to_value());
        let metadata = Metadata::read(&fields.take("metadata"));
        Ok(Self(DynamicObject {
            types: fields.take_types(),
            data: if metadata.is_complete {
                Value::Object(fields.0)
            } else {
                Value::Object(Map::new())
            },
            metadata: metadata.read,
        }))
    }
}

/// Object of a built-in kind with its managed fields, which every client that may update the object can set to anything:
/// they may be nested as deep as the client likes, and have a time that is none.
#[derive(Clone, Debug)]
pub(crate) struct OwnedObject(DynamicObject);

impl<'de> Deserialize<'de> for OwnedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Tree::deserialize(deserializer)?;
        let mut fields = Fields::from(object.to_value());
        let mut metadata = fields.take("metadata");
        let managed_fields = metadata
            .as_object_mut()
            .and_then(|metadata| metadata.remove("managedFields"));
        let mut metadata = Metadata::read(&metadata).read;
        metadata.managed_fields = managed_fields.map(read_managed_fields);
        Ok(Self(DynamicObject {
            types: fields.take_types(),
            metadata,
            data: Value::Object(fields.0),
        }))
    }
}

impl From<OwnedObject> for DynamicObject {
    fn from(object: OwnedObject) -> Self {
        object.0
    }
}

/// Returns the entries that are readable. Nothing depends on their times.
fn read_managed_fields(entries: Value) -> Vec<ManagedFieldsEntry> {
    let Value::Array(entries) = entries else {
        return Vec::new();
    };
    let read = |mut entry: Value| {
        let whole = ManagedFieldsEntry::deserialize(&entry);
        whole.ok().or_else(|| {
            entry.as_object_mut()?.remove("time");
            serde_json::from_value(entry).ok()
        })
    };
    entries.into_iter().filter_map(read).collect()
}

/// Fields of an object.
struct Fields(Map<String, Value>);

impl From<Value> for Fields {
    fn from(object: Value) -> Self {
        match object {
            Value::Object(fields) => Self(fields),
            _ => Self(Map::new()),
        }
    }
}

impl Fields {
    fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    fn take_types(&mut self) -> Option<TypeMeta> {
        match (self.take("apiVersion"), self.take("kind")) {
            (Value::String(api_version), Value::String(kind)) => {
                Some(TypeMeta { api_version, kind })
            }
            // The items of a list have no type.
            _ => None,
        }
    }
}

/// Metadata of an object that is read however deep the object is nested.
#[derive(Clone, Debug)]
pub(crate) struct CustomMetadata {
    pub(crate) metadata: ObjectMeta,
}

impl From<CustomMetadata> for DynamicObject {
    fn from(object: CustomMetadata) -> Self {
        Self {
            types: None,
            metadata: object.metadata,
            data: Value::Object(Map::new()),
        }
    }
}

impl From<CustomObject> for DynamicObject {
    fn from(object: CustomObject) -> Self {
        object.into_inner()
    }
}

impl<'de> Deserialize<'de> for CustomMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metadata = RawMetadata::deserialize(deserializer)?;
        let metadata = Metadata::read(&metadata.tree().to_value()).read;
        Ok(Self { metadata })
    }
}

/// Metadata, as far as it is readable.
struct Metadata {
    read: ObjectMeta,
    is_complete: bool,
}

impl Metadata {
    /// Reads the metadata as a whole, or else each of its fields alone.
    fn read(metadata: &Value) -> Self {
        if metadata.is_null() {
            return Self {
                read: ObjectMeta::default(),
                is_complete: true,
            };
        }
        let error = match ObjectMeta::deserialize(metadata) {
            Ok(read) => {
                return Self {
                    read,
                    is_complete: true,
                };
            }
            Err(error) => error,
        };
        let fields = metadata.as_object().into_iter().flatten();
        let alone = fields.map(|(name, value)| Map::from_iter([(name.clone(), value.clone())]));
        let readable = alone.filter(|field| ObjectMeta::deserialize(field).is_ok());
        let readable: Map<_, _> = readable.flatten().collect();
        let (namespace, name) = (&metadata["namespace"], &metadata["name"]);
        tracing::warn!(%namespace, %name, %error, "the metadata of an object is not readable; it is taken as invalid");
        Self {
            read: ObjectMeta::deserialize(&readable).unwrap_or_default(),
            is_complete: false,
        }
    }
}

/// Implements the API of any type for a wrapper of its objects.
macro_rules! dynamic_resource {
    ($type:ty, $metadata:ident => $path:expr, $path_mut:expr) => {
        impl Resource for $type {
            type DynamicType = ApiResource;
            type Scope = DynamicResourceScope;

            fn group(resource: &ApiResource) -> Cow<'_, str> {
                DynamicObject::group(resource)
            }

            fn version(resource: &ApiResource) -> Cow<'_, str> {
                DynamicObject::version(resource)
            }

            fn kind(resource: &ApiResource) -> Cow<'_, str> {
                DynamicObject::kind(resource)
            }

            fn api_version(resource: &ApiResource) -> Cow<'_, str> {
                DynamicObject::api_version(resource)
            }

            fn plural(resource: &ApiResource) -> Cow<'_, str> {
                DynamicObject::plural(resource)
            }

            fn meta(&self) -> &ObjectMeta {
                let $metadata = self;
                $path
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                let $metadata = self;
                $path_mut
            }
        }
    };
}

dynamic_resource!(CustomObject, object => &object.0.metadata, &mut object.0.metadata);
dynamic_resource!(OwnedObject, object => &object.0.metadata, &mut object.0.metadata);
dynamic_resource!(CustomMetadata, object => &object.metadata, &mut object.metadata);

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;

    use super::*;

    /// Returns an object whose fields and managed fields are nested as deep.
    fn nested(name: &str, levels: usize) -> String {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        format!(
            r#"{{"apiVersion": "g/v1", "kind": "K", "spec": {deep}, "status": {{"b": 1}},
            "metadata": {{"name": "{name}", "uid": "u", "managedFields": [{{"fieldsV1": {deep}}}]}}}}"#
        )
    }

    #[test]
    fn a_list_and_a_watch_event_are_read_however_deep_an_object_is() {
        for levels in [60, 126, 300, 9_000] {
            let text = format!(
                r#"{{"kind": "KList", "apiVersion": "g/v1", "metadata": {{"resourceVersion": "7"}}, "items": [{}, {}]}}"#,
                nested("deep", levels),
                nested("other", 1)
            );
            let list: ObjectList<CustomObject> = serde_json::from_str(&text).expect("a list");
            let [deep, other] = &list.items[..] else {
                panic!("two objects");
            };
            assert_eq!(deep.0.metadata.name.as_deref(), Some("deep"));
            assert_eq!(deep.0.metadata.managed_fields, None);
            assert_eq!(deep.0.data["status"], json!({"b": 1}));
            assert_eq!(other.0.data["spec"], json!({"a": 1}));
            let list: ObjectList<CustomMetadata> = serde_json::from_str(&text).expect("a list");
            assert_eq!(list.items[0].metadata.name.as_deref(), Some("deep"));
            let event = format!(
                r#"{{"type": "MODIFIED", "object": {}}}"#,
                nested("deep", levels)
            );
            let read: WatchEvent<CustomObject> = serde_json::from_str(&event).expect("an event");
            assert!(matches!(read, WatchEvent::Modified(_)));
            let read: WatchEvent<CustomMetadata> = serde_json::from_str(&event).expect("an event");
            assert!(matches!(read, WatchEvent::Modified(_)));
            let plain = serde_json::from_str::<WatchEvent<DynamicObject>>(&event);
            assert_eq!(plain.is_ok(), levels == 60, "{levels}");
        }
    }

    #[test]
    fn an_object_is_read_as_by_kube_without_its_managed_fields() {
        let text = nested("a", 3);
        let read: CustomObject = serde_json::from_str(&text).expect("an object");
        let mut plain: DynamicObject = serde_json::from_str(&text).expect("an object");
        plain.metadata.managed_fields = None;
        assert_eq!(read.into_inner(), plain);
    }
    /// Returns a list of an object with this metadata, and another one.
    fn listed(metadata: &Value) -> String {
        let items = json!([
            {"metadata": metadata, "spec": {"a": 1}},
            {"metadata": {"name": "other"}, "spec": {"a": 1}},
        ]);
        json!({"kind": "KList", "apiVersion": "g/v1", "metadata": {}, "items": items}).to_string()
    }

    #[test]
    fn an_item_of_a_list_whose_metadata_is_not_readable_concerns_itself_alone() {
        for (metadata, name) in [
            (json!({"name": "a", "labels": 1}), Some("a")),
            (json!({"name": "a", "labels": {"b": 1}}), Some("a")),
            (
                json!({"name": "a", "creationTimestamp": "10000-01-01T00:00:00Z"}),
                Some("a"),
            ),
            (json!({"name": "a", "finalizers": {}}), Some("a")),
            (json!({"name": 1}), None),
            (json!([]), None),
        ] {
            let text = listed(&metadata);
            let list: ObjectList<CustomObject> = serde_json::from_str(&text).expect("a list");
            let [bad, other] = &list.items[..] else {
                panic!("two objects");
            };
            assert_eq!(bad.0.metadata.name.as_deref(), name);
            assert_eq!(bad.0.data, json!({}), "nobody acts on it");
            assert_eq!(other.0.metadata.name.as_deref(), Some("other"));
            assert_eq!(other.0.data, json!({"spec": {"a": 1}}));
            let list: ObjectList<CustomMetadata> = serde_json::from_str(&text).expect("a list");
            assert_eq!(list.items[0].metadata.name.as_deref(), name);
            let list: ObjectList<OwnedObject> = serde_json::from_str(&text).expect("a list");
            assert_eq!(list.items[0].0.metadata.name.as_deref(), name);
        }
    }

    #[test]
    fn a_child_is_read_whatever_its_managed_fields_contain() {
        let entry = |manager: &str, time: &str, fields: &str| {
            format!(
                r#"{{"manager": "{manager}", "operation": "Apply", "time": "{time}", "fieldsV1": {fields}}}"#
            )
        };
        let deep = format!("{}{{}}{}", r#"{"f:a":"#.repeat(300), "}".repeat(300));
        let ours = entry("lockstep", "2024-01-01T00:00:00Z", r#"{"f:data": {}}"#);
        // The API server writes the last second of the year 9999 in UTC.
        let future = entry("tenant", "10000-01-01T13:59:59Z", r#"{"f:data": {}}"#);
        let deep = entry("tenant", "2024-01-01T00:00:00Z", &deep);
        for (other, is_kept) in [(future.as_str(), true), (&deep, true), ("7", false)] {
            let object = format!(
                r#"{{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "a", "managedFields": [{other}, {ours}]}}, "data": {{"b": "c"}}}}"#
            );
            let event = format!(r#"{{"type": "MODIFIED", "object": {object}}}"#);
            let read: WatchEvent<OwnedObject> = serde_json::from_str(&event).expect("an event");
            let WatchEvent::Modified(OwnedObject(read)) = read else {
                panic!("a changed object");
            };
            assert!(serde_json::from_str::<WatchEvent<DynamicObject>>(&event).is_err());
            let entries = read.metadata.managed_fields.expect("entries");
            let managers = entries.iter().map(|entry| entry.manager.as_deref());
            let expected = is_kept.then_some(Some("tenant")).into_iter();
            assert!(managers.eq(expected.chain([Some("lockstep")])), "{other}");
            let fields = entries.last().and_then(|entry| entry.fields_v1.as_ref());
            assert_eq!(fields.map(|fields| &fields.0), Some(&json!({"f:data": {}})));
            assert_eq!(read.data, json!({"data": {"b": "c"}}));
        }
    }

    #[test]
    fn a_child_is_read_as_by_kube() {
        let text = nested("a", 3);
        let read: OwnedObject = serde_json::from_str(&text).expect("an object");
        let plain: DynamicObject = serde_json::from_str(&text).expect("an object");
        assert_eq!(DynamicObject::from(read), plain);
    }
}
