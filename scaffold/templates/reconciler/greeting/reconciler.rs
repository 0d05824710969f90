//! Reconciliation of what an object wants outside the cluster.

use std::time::Duration;

use async_trait::async_trait;
use kube::{Client, ResourceExt};
use lockstep_sdk::controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, ReconcileError, ReconcileOutput, Reconciler,
    SyncRequest, require_existing,
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
                require_existing(&self.client, object).await?;
            }
            self.leadership.require(TIMEOUT)?;
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
        self.leadership.require(TIMEOUT)?;
        let id = deleted.object["metadata"]["uid"].as_str();
        self.api.delete(id.unwrap_or_default()).await?;
        Ok(FinalizeOutcome::Done)
    }
}
