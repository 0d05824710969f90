//! Kind under test: each object stands for something in the external system, and owns a `ConfigMap`.

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, OwnedType, ReconcileError, ReconcileOutput,
    Reconciler, SyncRequest,
};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::toy_crd;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sharding::external_system::Connection;

/// Calls of one reconciliation.
pub const CALLS: u32 = 2;

#[derive(Deserialize)]
pub struct Job {
    spec: JobSpec,
}

#[derive(Deserialize)]
struct JobSpec {
    size: u64,
}

impl ValidatedResource for Job {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Job";

    fn crd() -> Value {
        let size = json!({"type": "integer"});
        let spec = json!({"type": "object", "properties": {"size": size}});
        toy_crd("Job", "jobs", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {"size": 1}})
    }
}

/// Operator that calls the external system for each object again and again.
pub struct Operator {
    pub connection: Connection,
    pub leadership: Leadership,
}

impl Operator {
    /// Does the work for an object: each call is sent only if it ends before another replica may call.
    pub async fn work(&self, object: &str, size: u64) -> Result<(), ReconcileError> {
        let session = fastrand::u64(..);
        for step in 1..=CALLS {
            if !self.leadership.outlasts(Connection::DEADLINE) {
                return Err(transient("the lease may expire before the response"));
            }
            let called = self.connection.call(object, session, step, size).await;
            called.map_err(|error| transient(&error))?;
        }
        Ok(())
    }
}

fn transient(message: &str) -> ReconcileError {
    ReconcileError::Transient {
        reason: "CallFailed",
        message: message.to_owned(),
    }
}

#[async_trait]
impl Reconciler for Operator {
    type Kind = Job;

    fn owns(&self) -> Vec<OwnedType> {
        vec![OwnedType::namespaced::<ConfigMap>()]
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Job>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let name = request.raw_parent()["metadata"]["name"].as_str();
        let name = name.unwrap_or_default();
        let size = request.parent().spec.size;
        self.work(name, size).await?;
        Ok(ReconcileOutput {
            children: vec![json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {"size": size.to_string()},
            })],
            requeue_after: Duration::from_secs(3),
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}
