//! Chaos tests of a correct operator with simulators that are slow, or that run in another process. None may fail: a failure
//! would be a fault of the kit.

mod remote;
mod topics;

use std::time::Duration;

use async_trait::async_trait;
use kube::{Client, ResourceExt};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, ReconcileError, ReconcileOutput, Reconciler,
    SyncRequest,
};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::chaos::{Chaos, ExternalSystem, Process, chaos};
use lockstep_test::{objects, toy_crd};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chaos_simulators::remote::RemoteTopics;
use crate::chaos_simulators::topics::{SlowTopics, TopicClient};

/// Seeds of each test by default.
const SEEDS: u64 = 5;

/// Seeds of each test that is started by `--ignored`.
const MANY_SEEDS: u64 = 50;

/// Longest time of a call to the simulators.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Object for a topic.
#[derive(Deserialize)]
struct Topic {}

impl ValidatedResource for Topic {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Topic";

    fn crd() -> Value {
        let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
        let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schemas = json!({"spec": spec, "status": status});
        toy_crd("Topic", "topics", "Namespaced", &schemas)
    }

    fn example() -> Value {
        json!({"spec": {"size": 1}})
    }
}

/// Correct operator of topics, which their names identify.
struct TopicOperator {
    topics: TopicClient,
    client: Client,
    leadership: Leadership,
}

impl TopicOperator {
    fn new(process: &Process) -> Self {
        Self {
            topics: TopicClient::new(process.external_url()),
            client: process.client(),
            leadership: process.leadership(),
        }
    }

    /// Returns an error if the object no longer exists, or is being deleted: a watch may be late.
    async fn require_existing(&self, object: &Value) -> Result<(), ReconcileError> {
        let metadata = &object["metadata"];
        let api = objects::<Topic>(self.client.clone(), metadata["namespace"].as_str());
        let name = metadata["name"].as_str().unwrap_or_default();
        let failed = |message: String| ReconcileError::Transient {
            reason: "Deleted",
            message,
        };
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| failed(error.to_string()))?;
        let exists = found.is_some_and(|found| {
            found.uid().as_deref() == metadata["uid"].as_str()
                && found.metadata.deletion_timestamp.is_none()
        });
        let deleted = || failed("the object was deleted".to_owned());
        exists.then_some(()).ok_or_else(deleted)
    }
}

/// Returns the topic that an object wants.
fn topic(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"name": metadata["name"], "owner": metadata["uid"], "size": object["spec"]["size"]})
}

#[async_trait]
impl Reconciler for TopicOperator {
    type Kind = Topic;

    fn finalizer(&self) -> Option<&'static str> {
        Some("toys.example.com/topic")
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Topic>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let wanted = topic(request.raw_parent());
        let name = wanted["name"].as_str().unwrap_or_default();
        let found = self.topics.get(name).await?;
        if let Some(found) = &found
            && found["owner"] != wanted["owner"]
        {
            return Err(ReconcileError::Permanent {
                reason: "Taken",
                message: "the name belongs to another owner".to_owned(),
            });
        }
        if found.as_ref() != Some(&wanted) {
            if found.is_none() {
                self.require_existing(request.raw_parent()).await?;
            }
            self.leadership.require(TIMEOUT)?;
            self.topics.put(name, &wanted).await?;
        }
        Ok(ReconcileOutput::default())
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let metadata = &deleted.object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let found = self.topics.get(name).await?;
        if found.is_some_and(|found| found["owner"] == metadata["uid"]) {
            self.leadership.require(TIMEOUT)?;
            self.topics.delete(name).await?;
        }
        Ok(FinalizeOutcome::Done)
    }
}

/// Returns the test of the operator with a simulator.
fn with_simulator<S: ExternalSystem>(
    simulator: impl Fn() -> S + Send + Sync + 'static,
) -> Chaos<TopicOperator> {
    chaos(TopicOperator::new)
        .external(simulator)
        .specs(|random, _| json!({"size": random.u32(1..1_000)}))
        .expected_resources(|object| vec![topic(object)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_operator_passes_with_a_slow_simulator() {
    with_simulator(SlowTopics::default).seeds(SEEDS).run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_operator_passes_with_a_simulator_in_another_process() {
    with_simulator(RemoteTopics::start).seeds(SEEDS).run().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn a_correct_operator_passes_many_seeds_with_a_slow_simulator() {
    with_simulator(SlowTopics::default)
        .seeds(MANY_SEEDS)
        .run()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn a_correct_operator_passes_many_seeds_with_a_simulator_in_another_process() {
    with_simulator(RemoteTopics::start)
        .seeds(MANY_SEEDS)
        .run()
        .await;
}

/// Not a test: the simulator, which the tests start as a process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests"]
async fn simulator() {
    if std::env::var_os(remote::IS_SIMULATOR).is_some() {
        remote::serve().await;
    }
}
