//! Objects of any kind, as the API server returns them.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, GetParams, TypeMeta};
use kube::core::{DynamicResourceScope, Request};
use kube::{Client, Resource};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::custom_object::CustomMetadata;
use crate::field_manager::FieldManager;
use crate::request_limits::path_segment;

/// Object of any type, read in one pass. [`DynamicObject`] has the fields that it does not name by a flattened map, for which
/// serde first reads all values into a form of its own.
pub(crate) struct UntypedObject(pub(crate) DynamicObject);

impl<'de> Deserialize<'de> for UntypedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = UntypedObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut api_version, mut kind) = (None, None);
        let mut metadata = ObjectMeta::default();
        let mut data = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "apiVersion" => api_version = fields.next_value()?,
                "kind" => kind = fields.next_value()?,
                "metadata" => metadata = fields.next_value()?,
                _ => drop(data.insert(name, fields.next_value()?)),
            }
        }
        let types = Option::zip(api_version, kind);
        Ok(UntypedObject(DynamicObject {
            types: types.map(|(api_version, kind)| TypeMeta { api_version, kind }),
            metadata,
            data: Value::Object(data),
        }))
    }
}

/// Returns an object as JSON. It copies the fields that [`DynamicObject`] does not name, which it would write one by one.
pub(crate) fn to_value(object: &DynamicObject) -> serde_json::Result<Value> {
    let mut fields = match &object.data {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    if let Some(types) = &object.types {
        fields.insert("apiVersion".to_owned(), types.api_version.clone().into());
        fields.insert("kind".to_owned(), types.kind.clone().into());
    }
    let metadata = serde_json::to_value(&object.metadata)?;
    fields.insert("metadata".to_owned(), metadata);
    Ok(Value::Object(fields))
}

/// Returns the API of a type, in one namespace or in all.
pub(crate) fn api<K>(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let client = client.clone();
    match namespace {
        Some(namespace) => Api::namespaced_with(client, &path_segment(namespace), resource),
        None => Api::all_with(client, resource),
    }
}

/// Returns the metadata of an object, or none if it does not exist.
pub(crate) async fn metadata(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<CustomMetadata>, kube::Error> {
    let api: Api<CustomMetadata> = api(client, resource, namespace);
    let request = Request::new(api.resource_url())
        .get_metadata(&path_segment(name), &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    match client.request::<CustomMetadata>(request).await {
        Ok(metadata) => Ok(Some(metadata)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the type of an object, and removes the managed fields of other managers, which are often the larger part.
pub(crate) fn set_type_meta(
    object: &mut DynamicObject,
    resource: &ApiResource,
    manager: &FieldManager,
) {
    // The items of a list have no type.
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    if let Some(entries) = &mut object.metadata.managed_fields {
        entries.retain(|entry| manager.is_ours(entry));
    }
}

/// Resource versions are increasing numbers, for one type over all its objects:
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>.
pub(crate) fn resource_version(child: &DynamicObject) -> Option<u64> {
    child.metadata.resource_version.as_ref()?.parse().ok()
}

/// Returns true if `one` is a later state of the same object than `other`.
pub(crate) fn is_later(one: &DynamicObject, other: &DynamicObject) -> bool {
    one.metadata.uid == other.metadata.uid && resource_version(one) > resource_version(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_the_same_as_json_and_read_from_it() {
        let metadata = json!({"name": "a", "labels": {"app": "b"}, "creationTimestamp": "2026-01-02T03:04:05Z"});
        let whole = json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": metadata,
            "spec": {"number": 0.1, "text": "c"}, "status": null,
        });
        let untyped = json!({"metadata": metadata, "data": {"a": "b"}});
        for value in [whole, untyped] {
            let object: DynamicObject = serde_json::from_value(value.clone()).expect("an object");
            assert_eq!(to_value(&object).expect("JSON"), value);
            let text = value.to_string();
            let read: UntypedObject = serde_json::from_str(&text).expect("an object");
            assert_eq!(read.0, object);
        }
    }
}
