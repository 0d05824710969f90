//! Objects of kinds with free fields, which may be nested as deep as their creators like.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::DynamicResourceScope;
use lockstep_shared_validation::{RawMetadata, RawObject};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::{Map, Value};

/// Object that is read however deep it and its managed fields are nested: one that the parser refuses would fail the list or
/// the watch event in which it is, and with it the objects of all users.
///
/// # Guarantees
///
/// `metadata.managedFields` is skipped, which repeats the nesting of the object. What is deeper than
/// 100 levels is null, and the rule `nesting` then refuses the object.
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
        let Value::Object(mut fields) = object.to_value() else {
            return Err(D::Error::custom("it is not an object"));
        };
        let mut take = |name: &str| fields.remove(name).unwrap_or_default();
        let (api_version, kind, metadata) = (take("apiVersion"), take("kind"), take("metadata"));
        let types = match (api_version, kind) {
            (Value::String(api_version), Value::String(kind)) => {
                Some(TypeMeta { api_version, kind })
            }
            // The items of a list have no type.
            _ => None,
        };
        Ok(Self(DynamicObject {
            types,
            metadata: read_metadata(metadata)?,
            data: Value::Object(fields),
        }))
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
        let metadata = read_metadata(metadata.tree().to_value())?;
        Ok(Self { metadata })
    }
}

fn read_metadata<E: Error>(metadata: Value) -> Result<ObjectMeta, E> {
    if metadata.is_null() {
        return Ok(ObjectMeta::default());
    }
    serde_json::from_value(metadata).map_err(E::custom)
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
}
