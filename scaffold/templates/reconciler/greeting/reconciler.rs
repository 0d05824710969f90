//! Reconciliation of what an object wants outside the cluster.

use std::time::Duration;

use async_trait::async_trait;
use kube::api::Api;
use kube::{Client, ResourceExt};
use lockstep_sdk::controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, ReconcileError, ReconcileOutput, Reconciler,
    SyncRequest,
};
use serde_json::json;

use super::api::{GreetingApi, StoredGreeting, TIMEOUT};
use super::resource::Greeting;

/// Interval at which changes that were made outside the cluster are looked for.
const RESYNC: Duration = Duration::from_mins(10);

/// Reconciler of Greeting objects.
pub struct GreetingReconciler {
    /// API that stores the greetings.
    pub api: GreetingApi,
    /// Client of the API server.
    pub client: Client,
    /// Time until which this process is the leader.
    pub leadership: Leadership,
}

impl GreetingReconciler {
    /// Returns an error if another process may be the leader before a call ends.
    fn must_lead(&self) -> Result<(), ReconcileError> {
        if self.leadership.outlasts(TIMEOUT) {
            return Ok(());
        }
        let error = transient("NotLeading", "another process is the leader".to_owned());
        Err(ReconcileError::Inconclusive(Box::new(error)))
    }

    /// Returns an error if the object no longer exists: nothing must be created for one that only an old watch shows.
    async fn must_exist(&self, object: &Greeting) -> Result<(), ReconcileError> {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<Greeting> = Api::namespaced(self.client.clone(), &namespace);
        let found = api.get_metadata_opt(&object.name_any()).await;
        let found = found.map_err(|error| transient("ObjectUnreadable", error.to_string()))?;
        let exists = found.is_some_and(|found| {
            let metadata = found.metadata;
            metadata.uid == object.metadata.uid && metadata.deletion_timestamp.is_none()
        });
        let deleted = || transient("Deleted", "the object was deleted".to_owned());
        exists.then_some(()).ok_or_else(deleted)
    }
}

#[async_trait]
impl Reconciler for GreetingReconciler {
    type Kind = Greeting;

    fn finalizer(&self) -> Option<&'static str> {
        Some("demo.example.com/greeting")
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Greeting>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let object = request.parent();
        let id = object.uid().unwrap_or_default();
        let desired = StoredGreeting {
            text: object.spec.text.clone(),
            language: object.spec.language.clone(),
        };
        let stored = self.api.get(&id).await?;
        if stored.as_ref() != Some(&desired) {
            if stored.is_none() {
                self.must_exist(object).await?;
            }
            self.must_lead()?;
            self.api.put(&id, &desired).await?;
        }
        let status = json!({"id": id, "text": desired.text});
        Ok(ReconcileOutput {
            status: status.as_object().cloned().unwrap_or_default(),
            requeue_after: RESYNC,
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        self.must_lead()?;
        let id = deleted.object["metadata"]["uid"].as_str();
        self.api.delete(id.unwrap_or_default()).await?;
        Ok(FinalizeOutcome::Done)
    }
}

fn transient(reason: &'static str, message: String) -> ReconcileError {
    ReconcileError::Transient { reason, message }
}
