//! Watch on the metadata of Namespaces, whose annotations choose the region and the role of their objects.

use std::iter;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ApiResource};
use lockstep_controller::{ReconcileError, Reference, RelatedObjects, Watch};
use serde_json::{Value, json};

use crate::aws::access::{Access, AccessRules, NamespaceAccess};
use crate::aws::external_ids::ExternalIds;

/// Returns the watch. An object refers to its Namespace. The access of each Namespace is passed to `record`.
pub(crate) fn watch(rules: AccessRules, record: impl Fn(&Access) + Send + Sync + 'static) -> Watch {
    Watch::new::<Namespace>(|object| {
        let namespace = object["metadata"]["namespace"].as_str();
        let key = namespace.map(|namespace| Reference::IndexKey(namespace.to_owned()));
        key.into_iter().collect()
    })
    .metadata_only()
    .index_by(move |namespace| {
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        let access = NamespaceAccess::of(namespace);
        // Without annotations of its own, an object has the access of its Namespace.
        if let Ok(access) = access.for_object(&Value::Null, &rules) {
            record(&access);
        }
        let external_id = access.own_external_id().map(key_of_external_id);
        let keys = iter::once(name.to_owned()).chain(external_id);
        (keys.collect(), access)
    })
}

/// Returns the key by which the Namespaces with an external ID are found. It is no name of a Namespace.
fn key_of_external_id(external_id: &str) -> String {
    format!("external-id/{external_id}")
}

/// Reads a Namespace from the API server.
pub(crate) async fn read(client: &Client, name: &str) -> Result<NamespaceAccess, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_metadata(name).await;
    let found = found.map_err(|error| format!("cannot read the Namespace: {error}"))?;
    Ok(NamespaceAccess::of(&json!({"metadata": found.metadata})))
}

/// Returns the permission to read a Namespace at admission.
pub(crate) fn rbac_rule_of_check() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]})
}

/// Returns the access of an object, by its own annotations and those of its Namespace as cached from the watch.
///
/// # Errors
///
/// The errors of [`NamespaceAccess::for_object`] and [`ExternalIds::require`], and a transient one if the Namespace is not cached yet:
/// without its annotations, an instance could be created in a wrong account.
pub(crate) async fn access(
    object: &Value,
    related: RelatedObjects<'_>,
    rules: &AccessRules,
    external_ids: &ExternalIds,
) -> Result<Access, ReconcileError> {
    let name = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let resource = ApiResource::erase::<Namespace>(&());
    let found = related.by_index::<NamespaceAccess>(&resource, &[name.to_owned()])?;
    let Some(namespace) = found.first() else {
        return Err(ReconcileError::Transient {
            reason: "NamespaceUnknown",
            message: format!("the watch has not delivered the Namespace '{name}' yet"),
        });
    };
    let access = namespace.for_object(object, rules)?;
    if access.role.is_some()
        && let Some(external_id) = namespace.own_external_id()
    {
        let key = key_of_external_id(external_id);
        let all = related.by_index::<NamespaceAccess>(&resource, &[key])?;
        external_ids.require(namespace, &all).await?;
    }
    Ok(access)
}
