//! Secrets, read by their names from the API server.

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use lockstep_controller::{ReadObject, ReconcileError, path_segment};

/// Reads a Secret by its name from the API server.
pub(crate) async fn read_secret(
    client: &Client,
    namespace: &str,
    name: &str,
) -> (Result<Option<Secret>, ReconcileError>, ReadObject) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &path_segment(namespace));
    let secret = secrets.get_opt(&path_segment(name)).await;
    let found = secret.as_ref().ok().and_then(Option::as_ref);
    let read = ReadObject::of::<Secret>(namespace, name, found);
    let secret = secret.map_err(|error| match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let message = format!(
                "the controller has no permission to read the Secret '{name}'; bind the ClusterRole \
                 lockstep-secret-reader to its ServiceAccount with a RoleBinding in this namespace"
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
