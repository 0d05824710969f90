//! Secrets that the controller creates for an object: one for applications, and one with a generated password.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use lockstep_cloud_database_api::{
    CloudDatabase, CloudDatabaseStatus, connection_secret_name, generated_secret_name,
};
use lockstep_controller::{OwnedType, ReconcileError, ReconcileOutput, SecretRights, SyncRequest};
use serde_json::{Value, json};

use crate::credentials::connection_secret::Published;
use crate::credentials::master_user::MANAGED_VERSION;

/// Status field with the names of the Secrets.
const OWNED_SECRETS: &str = "ownedSecrets";

/// Returns the type of the Secrets. They are watched only in namespaces with an object that has one, or has had one that is
/// yet to be deleted.
pub(crate) fn owned_type() -> OwnedType {
    OwnedType::namespaced::<Secret>().watch_in(namespaces)
}

fn namespaces(object: &Value) -> Vec<String> {
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.filter(|_| has_secrets(object));
    namespace.map(String::from).into_iter().collect()
}

fn has_secrets(object: &Value) -> bool {
    let spec = &object["spec"];
    spec["connectionSecret"].is_object()
        || spec["credentials"]["generate"].is_object()
        || object["status"][OWNED_SECRETS]
            .as_array()
            .is_some_and(|names| !names.is_empty())
}

/// Returns the rights on Secrets that an object needs in its namespace.
pub(crate) fn needed_rights(object: &Value) -> SecretRights {
    if has_secrets(object) {
        SecretRights::Edit
    } else {
        SecretRights::View
    }
}

/// Adds the Secrets to the result of a reconciliation, which has the one for applications if its content is known. `generated`
/// is the one with a generated password.
pub(crate) fn add(
    output: &mut ReconcileOutput,
    status: &mut CloudDatabaseStatus,
    request: &SyncRequest<'_, CloudDatabase>,
    generated: Option<Value>,
) -> Result<(), ReconcileError> {
    let object = request.parent();
    let find = |name: &str| request.children().get::<Secret>(name);
    // While RDS does not describe the instance, the Secret stays as it is.
    if output.children.is_empty()
        && let Some(name) = connection_secret_name(object)
        && find(&name)?.is_some()
    {
        output.children.push(unchanged(&name));
    }
    match generated {
        Some(secret) => output.children.push(secret),
        None => {
            let name = generated_secret_name(object);
            let version = status.credentials_version.as_deref();
            let is_open = status.requested_credentials_version.is_some();
            let credentials = &object.spec.credentials;
            let is_demanded = credentials.generate.is_some() || is_open;
            let is_managed = credentials.managed.is_some();
            let keeps = |secret: &Secret| is_demanded || may_be_in_use(secret, version, is_managed);
            if find(&name)?.is_some_and(|secret| keeps(&secret)) {
                output.children.push(unchanged(&name));
            }
        }
    }
    let names = output.children.iter();
    let names = names.filter_map(|child| child["metadata"]["name"].as_str());
    status.owned_secrets = names.map(String::from).collect();
    Ok(())
}

/// Returns what applications were given before. Of a Secret that has another name now, it is what the Secret with the earlier
/// name has.
pub(crate) fn published(
    request: &SyncRequest<'_, CloudDatabase>,
) -> Result<Option<Published>, ReconcileError> {
    let object = request.parent();
    let Some(name) = connection_secret_name(object) else {
        return Ok(None);
    };
    let generated = generated_secret_name(object);
    let owned = request.raw_parent()["status"][OWNED_SECRETS].as_array();
    let owned = owned.into_iter().flatten().filter_map(Value::as_str);
    let others = owned.filter(|it| *it != name && *it != generated);
    for name in std::iter::once(name.as_str()).chain(others) {
        let secret = request.children().get::<Secret>(name)?;
        let published = secret.as_ref().and_then(Published::before);
        if published.is_some() {
            return Ok(published);
        }
    }
    Ok(None)
}

/// Returns true unless the instance is known to have another password than that of a Secret: the one of another Secret, or one
/// that RDS manages, as the spec demands.
fn may_be_in_use(secret: &Secret, version: Option<&str>, is_managed: bool) -> bool {
    let uid = secret.uid().unwrap_or_default();
    match version {
        Some(MANAGED_VERSION) => !is_managed,
        Some(version) => version.split_once('/').is_none_or(|(of, _)| of == uid),
        None => true,
    }
}

/// Returns a child that is neither changed nor deleted.
fn unchanged(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_watched_only_where_an_object_has_some() {
        let of = |spec: Value, status: Value| {
            namespaces(&json!({"metadata": {"namespace": "shop"}, "spec": spec, "status": status}))
        };
        let none = json!({});
        let own = json!({"credentials": {"secretName": "s"}});
        assert!(of(own.clone(), none.clone()).is_empty());
        assert!(of(own.clone(), json!({"ownedSecrets": []})).is_empty());
        let generated = json!({"credentials": {"generate": {}}});
        let published = json!({"connectionSecret": {}});
        for (spec, status) in [
            (generated, none.clone()),
            (published, none),
            (own, json!({"ownedSecrets": ["orders-connection"]})),
        ] {
            assert_eq!(of(spec, status), ["shop"]);
        }
    }

    #[test]
    fn a_generated_password_is_kept_while_the_instance_has_it() {
        let mut secret = Secret::default();
        secret.metadata.uid = Some("1".to_owned());
        let is_kept = |version: &str| may_be_in_use(&secret, Some(version), false);
        assert!(is_kept("1/7"));
        assert!(!is_kept("12/7"));
        assert!(is_kept("unknown"));
        assert!(may_be_in_use(&secret, None, false));
        assert!(is_kept("managed"), "RDS may be ending that");
        assert!(!may_be_in_use(&secret, Some("managed"), true));
    }
}
