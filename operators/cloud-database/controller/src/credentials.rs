//! Credentials of the master user, read from the object and its Secret.

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::{CloudDatabase, check_password, check_username};
use lockstep_controller::{ReadObject, ReconcileError};

/// Username and password of the master user. Neither is ever printed.
pub(crate) struct MasterUser {
    pub(crate) name: String,
    pub(crate) password: String,
    /// UID and resource version of the Secret. The password cannot be derived from it, in contrast to a hash, which helps
    /// to guess it.
    pub(crate) version: String,
}

/// Version of the credentials of an instance whose password is unknown.
pub(crate) const UNKNOWN_VERSION: &str = "unknown";

/// Reads the credentials from the Secret, and returns them with the Secret that was read, whose changes trigger the next
/// reconciliation. A username in the spec takes precedence over one in the Secret. Values from the Secret are validated by
/// the same rules as values in the object.
pub(crate) async fn read(
    client: &Client,
    object: &CloudDatabase,
) -> (Result<MasterUser, ReconcileError>, ReadObject) {
    let namespace = object.namespace().unwrap_or_default();
    let name = &object.spec.credentials.secret_name;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let secret = secrets.get_opt(name).await;
    let found = secret.as_ref().ok().and_then(Option::as_ref);
    let read = ReadObject::of::<Secret>(&namespace, name, found);
    let secret = match secret {
        Ok(Some(secret)) => secret,
        Ok(None) => {
            let message = format!(
                "the Secret '{name}' does not exist in the namespace of the object; create it"
            );
            return (Err(transient("SecretNotFound", message)), read);
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            let message = format!(
                "the controller has no permission to read the Secret '{name}'; bind the ClusterRole \
                 lockstep-secret-reader to its ServiceAccount with a RoleBinding in this namespace"
            );
            return (Err(transient("SecretForbidden", message)), read);
        }
        Err(error) => {
            let message = format!("cannot read the Secret: {error}");
            return (Err(transient("SecretUnreadable", message)), read);
        }
    };
    (of_secret(object, &secret), read)
}

fn of_secret(object: &CloudDatabase, secret: &Secret) -> Result<MasterUser, ReconcileError> {
    let credentials = &object.spec.credentials;
    let entry = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key));
        bytes
            .and_then(|bytes| String::from_utf8(bytes.0.clone()).ok())
            .ok_or_else(|| {
                let message = format!(
                    "the Secret '{}' has no UTF-8 text under the key '{key}'; add it",
                    credentials.secret_name
                );
                transient("SecretKeyMissing", message)
            })
    };
    let password = entry(&credentials.selectors.password)?;
    let (name, mut errors) = match &credentials.username {
        Some(name) => (name.clone(), Vec::new()),
        None => {
            let name = entry(&credentials.selectors.username)?;
            let errors = check_username(object, &name);
            (name, errors)
        }
    };
    errors.extend(check_password(object, &password));
    if !errors.is_empty() {
        return Err(ReconcileError::Invalid(errors));
    }
    let of = Option::unwrap_or_default;
    Ok(MasterUser {
        name,
        password,
        version: format!("{}/{}", of(secret.uid()), of(secret.resource_version())),
    })
}

fn transient(reason: &'static str, message: String) -> ReconcileError {
    ReconcileError::Transient { reason, message }
}
