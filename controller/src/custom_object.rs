//! Objects that are read whatever their creators have written into them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::DynamicResourceScope;
use lockstep_shared_validation::{RawMetadata, RawObject, Tree};
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Spec of an object that is not readable.
const UNREADABLE: &str = "the object is not readable";

/// Object that is read whatever it contains, however deep it and its managed fields are nested: one that the parser refuses
/// would fail the list or the watch event in which it is, and with it the objects of all users.
///
/// # Guarantees
///
/// `metadata.managedFields` is skipped, which repeats the nesting of the object. What is deeper than
/// 100 levels is null, and the rule `nesting` then refuses the object.
///
/// An object of which anything is not readable otherwise has only the readable fields of its metadata, and a text as its
/// spec, which is no valid spec of any kind: the object is reported as invalid, and the controller does not act on it.
///
/// # Assumptions
///
/// It is deserialized from a text.
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
        let text = <&RawValue>::deserialize(deserializer)?;
        let parsed = RawObject::parse(text).map(RawObject::into_tree);
        let ReadableObject {
            mut object,
            is_complete,
        } = ReadableObject::new(text, parsed);
        if !is_complete {
            object.data = json!({"spec": UNREADABLE});
        }
        Ok(Self(object))
    }
}

/// Object of a built-in kind with its managed fields, which every client that may update the object can set to anything:
/// they may be nested as deep as the client likes, and have a time that is none.
#[derive(Clone, Debug)]
pub(crate) struct OwnedObject(DynamicObject);

impl<'de> Deserialize<'de> for OwnedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?;
        let mut parsed = Tree::deserialize(text);
        let metadata = parsed.as_mut().ok();
        let metadata = metadata.and_then(|object| object.field_mut("metadata"));
        let managed_fields = metadata.and_then(|metadata| metadata.remove("managedFields"));
        let mut object = ReadableObject::new(text, parsed).object;
        object.metadata.managed_fields = managed_fields.map(read_managed_fields);
        Ok(Self(object))
    }
}

impl From<OwnedObject> for DynamicObject {
    fn from(object: OwnedObject) -> Self {
        object.0
    }
}

/// Returns the entries that are readable. Nothing depends on their times.
fn read_managed_fields(entries: Tree<'_>) -> Vec<ManagedFieldsEntry> {
    let Tree::List(entries) = entries else {
        return Vec::new();
    };
    let read = |mut entry: Tree<'_>| {
        let whole = ManagedFieldsEntry::deserialize(&entry);
        whole.ok().or_else(|| {
            entry.remove("time")?;
            ManagedFieldsEntry::deserialize(&entry).ok()
        })
    };
    entries.into_iter().filter_map(read).collect()
}

/// Metadata of an object that is read whatever else is in the object.
#[derive(Clone, Debug)]
pub(crate) struct CustomMetadata {
    pub(crate) metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for CustomMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?;
        let metadata = ReadableMetadata::from(&parsed_metadata(text)).metadata;
        Ok(Self { metadata })
    }
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

/// Object, or what is readable of its metadata if anything of the object is not.
struct ReadableObject {
    object: DynamicObject,
    is_complete: bool,
}

impl ReadableObject {
    fn new(text: &RawValue, parsed: serde_json::Result<Tree<'_>>) -> Self {
        let is_parsed = matches!(parsed, Ok(Tree::Object(_)));
        let fields = match parsed {
            Ok(Tree::Object(fields)) => fields,
            Ok(_) => Vec::new(),
            Err(error) => {
                let metadata = parsed_metadata(text);
                report_unreadable(&metadata, &error);
                vec![("metadata".into(), metadata)]
            }
        };
        let (mut api_version, mut kind) = (None, None);
        let mut metadata = ReadableMetadata::from(&Tree::Null);
        let mut data = Map::new();
        for (name, value) in fields {
            match name.as_ref() {
                "apiVersion" => api_version = value.into_text(),
                "kind" => kind = value.into_text(),
                "metadata" => metadata = ReadableMetadata::from(&value),
                _ => drop(data.insert(name.into_owned(), value.to_value())),
            }
        }
        let is_complete = is_parsed && metadata.is_complete;
        if !is_complete {
            data.clear();
        }
        // The items of a list have no type.
        let types = api_version.zip(kind);
        Self {
            object: DynamicObject {
                types: types.map(|(api_version, kind)| TypeMeta { api_version, kind }),
                metadata: metadata.metadata,
                data: Value::Object(data),
            },
            is_complete,
        }
    }
}

/// Returns the metadata of an object, or null if it cannot be parsed.
fn parsed_metadata(object: &RawValue) -> Tree<'_> {
    let metadata = RawMetadata::deserialize(object).map(RawMetadata::into_tree);
    metadata.unwrap_or(Tree::Null)
}

fn report_unreadable(metadata: &Tree<'_>, error: &serde_json::Error) {
    let text = |name: &str| match metadata.field(name) {
        Some(Tree::Text(text)) => text.as_ref(),
        _ => "",
    };
    let (namespace, name) = (text("namespace"), text("name"));
    tracing::warn!(namespace, name, %error, "an object is not readable; it is invalid");
}

/// Metadata, as far as it is readable.
struct ReadableMetadata {
    metadata: ObjectMeta,
    is_complete: bool,
}

impl From<&Tree<'_>> for ReadableMetadata {
    /// Reads the metadata as a whole, or else each of its fields alone.
    fn from(metadata: &Tree<'_>) -> Self {
        let error = match Option::<ObjectMeta>::deserialize(metadata) {
            Ok(whole) => {
                return Self {
                    metadata: whole.unwrap_or_default(),
                    is_complete: true,
                };
            }
            Err(error) => error,
        };
        report_unreadable(metadata, &error);
        let metadata = metadata.to_value();
        let fields = metadata.as_object().into_iter().flatten();
        let readable: Map<_, _> = fields
            .map(|(name, value)| Map::from_iter([(name.clone(), value.clone())]))
            .filter(|field| ObjectMeta::deserialize(field).is_ok())
            .flatten()
            .collect();
        Self {
            metadata: ObjectMeta::deserialize(&readable).unwrap_or_default(),
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

    #[test]
    fn an_item_of_a_list_that_is_not_readable_concerns_itself_alone() {
        let metadata =
            |metadata: &str| format!(r#"{{"metadata": {metadata}, "spec": {{"a": 1}}}}"#);
        let spec = |spec: &str| format!(r#"{{"spec": {spec}, "metadata": {{"name": "a"}}}}"#);
        for (item, name) in [
            (metadata(r#"{"name": "a", "labels": 1}"#), Some("a")),
            (metadata(r#"{"name": "a", "labels": {"b": 1}}"#), Some("a")),
            (
                metadata(r#"{"name": "a", "creationTimestamp": "10000-01-01T00:00:00Z"}"#),
                Some("a"),
            ),
            (metadata(r#"{"name": "a", "finalizers": {}}"#), Some("a")),
            (metadata(r#"{"name": 1}"#), None),
            (metadata(r#"{"name": 1e999}"#), None),
            (metadata("[]"), None),
            // No number of Rust, and half of a surrogate pair.
            (spec("1e999"), Some("a")),
            (spec(r#"{"\ud800": ["\udc00"]}"#), Some("a")),
            ("[]".to_owned(), None),
            ("1".to_owned(), None),
        ] {
            let text = format!(
                r#"{{"kind": "KList", "apiVersion": "g/v1", "metadata": {{}},
                "items": [{item}, {{"metadata": {{"name": "other"}}, "spec": {{"a": 1}}}}]}}"#
            );
            let list: ObjectList<CustomObject> = serde_json::from_str(&text).expect("a list");
            let [bad, other] = &list.items[..] else {
                panic!("two objects");
            };
            assert_eq!(bad.0.metadata.name.as_deref(), name, "{item}");
            assert_eq!(bad.0.data, json!({"spec": UNREADABLE}));
            assert_eq!(other.0.metadata.name.as_deref(), Some("other"));
            assert_eq!(other.0.data, json!({"spec": {"a": 1}}));
            let list: ObjectList<CustomMetadata> = serde_json::from_str(&text).expect("a list");
            assert_eq!(list.items[0].metadata.name.as_deref(), name);
            let list: ObjectList<OwnedObject> = serde_json::from_str(&text).expect("a list");
            assert_eq!(list.items[0].0.metadata.name.as_deref(), name);
            let event = format!(r#"{{"type": "MODIFIED", "object": {item}}}"#);
            let read: WatchEvent<CustomObject> = serde_json::from_str(&event).expect("an event");
            let WatchEvent::Modified(read) = read else {
                panic!("a changed object");
            };
            assert_eq!(read, *bad);
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
