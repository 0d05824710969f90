//! Preconditions of a call that creates or changes something in another system.

use std::time::Duration;

use kube::api::ApiResource;
use kube::{Client, Resource};

use crate::api::error::ReconcileError;
use crate::dynamic_object;
use crate::leader_election::Leadership;

impl Leadership {
    /// Returns an error if another process may reconcile the object before a call ends that takes at most this long. The error
    /// says nothing about the state of the object, so an object that is ready with its current spec stays ready.
    ///
    /// A client that repeats failed calls needs the time of all its attempts and of the delays between them. The one of `kube`
    /// repeats what was answered with 429, 503 or 504 unless `default_retry` of its configuration is false.
    ///
    /// # Errors
    ///
    /// `NotLeading`, see above.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lockstep_controller::Leadership;
    ///
    /// let call = Duration::from_secs(5);
    /// assert!(Leadership::always().require(call).is_ok());
    /// ```
    pub fn require(&self, call: Duration) -> Result<(), ReconcileError> {
        if self.outlasts(call) {
            return Ok(());
        }
        let message = "another process reconciles this object, or will do so soon";
        Err(ReconcileError::transient("NotLeading", message).inconclusive())
    }
}

/// Returns an error if the object no longer exists, is another one of the same name, or is being deleted. A watch may be late:
/// check this before something is created that only the finalizer of the object would delete.
///
/// # Errors
///
/// `Deleted`, see above; `ObjectUnreadable` if the API server does not answer.
pub async fn require_existing<K>(client: &Client, object: &K) -> Result<(), ReconcileError>
where
    K: Resource<DynamicType = ()>,
{
    let resource = ApiResource::erase::<K>(&());
    let metadata = object.meta();
    let namespace = metadata.namespace.as_deref();
    let name = metadata.name.as_deref().unwrap_or_default();
    let found = dynamic_object::metadata(client, &resource, namespace, name).await;
    let found = found.map_err(|error| {
        let message = format!("the object cannot be read: {error}");
        ReconcileError::transient("ObjectUnreadable", message)
    })?;
    let exists = found.is_some_and(|found| {
        found.metadata.uid == metadata.uid && found.metadata.deletion_timestamp.is_none()
    });
    let deleted = || ReconcileError::transient("Deleted", "the object was deleted");
    exists.then_some(()).ok_or_else(deleted)
}
