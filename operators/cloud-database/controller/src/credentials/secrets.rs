//! Secrets, read by their names from the API server.

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use lockstep_controller::{ReadObject, ReconcileError, SecretAccess, SecretRights, path_segment};

/// Access to the Secrets of all namespaces.
#[derive(Clone, Copy)]
pub(crate) struct Secrets<'a> {
    pub(crate) client: &'a Client,
    pub(crate) access: &'a SecretAccess,
    /// Rights that the object needs in its namespace.
    pub(crate) needed: SecretRights,
}

/// Reads a Secret by its name from the API server.
pub(crate) async fn read_secret(
    secrets: Secrets<'_>,
    namespace: &str,
    name: &str,
) -> (Result<Option<Secret>, ReconcileError>, ReadObject) {
    let all: Api<Secret> = Api::namespaced(secrets.client.clone(), &path_segment(namespace));
    let secret = all.get_opt(&path_segment(name)).await;
    let found = secret.as_ref().ok().and_then(Option::as_ref);
    let read = ReadObject::of::<Secret>(namespace, name, found);
    let secret = secret.map_err(|error| match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let message = format!(
                "the controller has no permission to read the Secret '{name}'; {}",
                secrets.access.remedy(secrets.needed, namespace)
            );
            transient("SecretForbidden", message)
        }
        error => transient(
            "SecretUnreadable",
            format!("cannot read the Secret: {error}"),
        ),
    });
    (secret, read)
}

/// Returns a value of a Secret, if it is UTF-8.
pub(crate) fn text(secret: &Secret, key: &str) -> Option<String> {
    let value = secret.data.as_ref()?.get(key)?;
    String::from_utf8(value.0.clone()).ok()
}

/// Returns an error about a Secret, which a user can correct.
pub(crate) fn transient(reason: &'static str, message: String) -> ReconcileError {
    ReconcileError::Transient { reason, message }
}
