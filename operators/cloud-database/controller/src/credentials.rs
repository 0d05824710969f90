//! Credentials of the master user, read from the object and its Secret.

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::{CloudDatabase, check_password, check_username};
use lockstep_controller::ReconcileError;

/// Username and password of the master user. Neither is ever printed.
pub(crate) struct MasterUser {
    pub(crate) name: String,
    pub(crate) password: String,
}

/// Reads the credentials from the Secret. A username in the spec takes precedence over one in the Secret. Values from
/// the Secret are validated by the same rules as values in the object.
pub(crate) async fn read(
    client: &Client,
    object: &CloudDatabase,
) -> Result<MasterUser, ReconcileError> {
    let credentials = &object.spec.credentials;
    let secrets: Api<Secret> =
        Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let transient = |reason, message| ReconcileError::Transient { reason, message };
    let secret = secrets
        .get_opt(&credentials.secret_name)
        .await
        .map_err(|error| match error {
            kube::Error::Api(status) if status.is_forbidden() => {
                let message = format!(
                    "the controller has no permission to read the Secret '{}'; bind the ClusterRole \
                     lockstep-secret-reader to its ServiceAccount with a RoleBinding in this namespace",
                    credentials.secret_name
                );
                transient("SecretForbidden", message)
            }
            error => transient(
                "SecretUnreadable",
                format!("cannot read the Secret: {error}"),
            ),
        })?
        .ok_or_else(|| {
            let message = format!(
                "the Secret '{}' does not exist in the namespace of the object; create it",
                credentials.secret_name
            );
            transient("SecretNotFound", message)
        })?;
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
    if errors.is_empty() {
        Ok(MasterUser { name, password })
    } else {
        Err(ReconcileError::Invalid(errors))
    }
}
