//! Chaos tests of small kinds: a cluster-scoped one with a client trait, and one with owned objects only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OwnedType, ReconcileError, ReconcileOutput, Reconciler,
    SyncReconciler, SyncRequest, SyncResponse,
};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::chaos::{
    Chaos, ExternalCalls, ExternalFault, ExternalSystem, Process, Property, chaos,
};
use lockstep_test::{cluster_with, toy_crd};
use serde::Deserialize;
use serde_json::{Value, json};

/// Cluster-scoped object for a queue.
#[derive(Deserialize)]
struct Queue {}

impl ValidatedResource for Queue {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Queue";

    fn crd() -> Value {
        let size = json!({"type": "integer"});
        let spec = json!({"type": "object", "properties": {"size": size}});
        toy_crd("Queue", "queues", "Cluster", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {"size": 1}})
    }
}

/// Queues by name. A creation replaces a queue that exists.
#[derive(Default)]
struct Queues(Mutex<BTreeMap<String, Value>>);

impl Queues {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExternalSystem for Queues {
    fn resources(&self) -> BTreeMap<String, Value> {
        self.all().clone()
    }

    fn set(&self, id: &str, resource: Option<Value>) {
        match resource {
            Some(queue) => {
                let name = queue["name"].as_str().unwrap_or_default().to_owned();
                self.all().insert(name, queue);
            }
            None => drop(self.all().remove(id)),
        }
    }
}

/// Operator of queues, whose client is a trait in reality.
struct QueueOperator {
    queues: Arc<Queues>,
    calls: ExternalCalls,
    /// If true, it forgets whose the queues are.
    takes_over: bool,
}

fn failed(fault: ExternalFault) -> ReconcileError {
    ReconcileError::Transient {
        reason: "QueuesFailed",
        message: fault.to_string(),
    }
}

impl QueueOperator {
    async fn get(&self, name: &str) -> Result<Option<Value>, ReconcileError> {
        let (queues, name) = (Arc::clone(&self.queues), name.to_owned());
        let get = async move { queues.all().get(&name).cloned() };
        self.calls.call("get", false, get).await.map_err(failed)
    }

    async fn put(&self, name: &str, queue: Option<Value>) -> Result<(), ReconcileError> {
        let (queues, name) = (Arc::clone(&self.queues), name.to_owned());
        let put = async move {
            match queue {
                Some(queue) => drop(queues.all().insert(name, queue)),
                None => drop(queues.all().remove(&name)),
            }
        };
        self.calls.call("put", true, put).await.map_err(failed)
    }
}

fn queue(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"name": metadata["name"], "owner": metadata["uid"], "size": object["spec"]["size"]})
}

#[async_trait]
impl Reconciler for QueueOperator {
    type Kind = Queue;

    fn finalizer(&self) -> Option<&'static str> {
        Some("toys.example.com/queue")
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Queue>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let wanted = queue(request.raw_parent());
        let name = wanted["name"].as_str().unwrap_or_default();
        match self.get(name).await? {
            Some(found) if found["owner"] != wanted["owner"] && !self.takes_over => {
                return Err(ReconcileError::Permanent {
                    reason: "Taken",
                    message: "the name belongs to another owner".to_owned(),
                });
            }
            Some(found) if found == wanted => {}
            _ => self.put(name, Some(wanted.clone())).await?,
        }
        Ok(ReconcileOutput::default())
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let metadata = &deleted.object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let found = self.get(name).await?;
        if found.is_some_and(|found| found["owner"] == metadata["uid"]) {
            self.put(name, None).await?;
        }
        Ok(FinalizeOutcome::Done)
    }
}

/// Returns the test of an operator whose processes call the simulator by their client trait.
fn queues_test(takes_over: bool) -> Chaos<QueueOperator> {
    let operator = move |process: &Process| QueueOperator {
        queues: process.external_system(),
        calls: process.external_calls(),
        takes_over,
    };
    chaos(operator)
        .external(Queues::default)
        .specs(|random, _| json!({"size": random.u32(1..1_000)}))
        .expected_resources(|object| vec![queue(object)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_scoped_kind_with_a_client_trait_passes() {
    let summary = queues_test(false).seeds(3).run().await;
    assert_eq!(summary.seeds, 3);
    assert!(
        summary.reconciliations > 0 && summary.call_faults > 0,
        "{summary:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_names_what_is_needed_to_understand_it_and_its_seed_finds_it_again() {
    let cluster = cluster_with::<Queue>().await;
    let failure = queues_test(true).seeds(5).check(&cluster.client()).await;
    let failure = failure.expect_err("the operator takes over the queues of others");
    assert_eq!(failure.violation.property, Property::ExternalState);
    let report = failure.to_string();
    let seed = failure.seed;
    for part in [
        format!("seed {seed} broke the property `external state`"),
        "another owner: has".to_owned(),
        "the resource of another owner is unchanged".to_owned(),
        ": put".to_owned(),
        format!("`.seed({seed})`"),
    ] {
        assert!(report.contains(&part), "no {part:?} in {report}");
    }
    let again = queues_test(true).seed(seed).check(&cluster.client()).await;
    let again = again.expect_err("the seed finds it again");
    assert_eq!(again.violation.property, Property::ExternalState);
}

/// Object with a `ConfigMap`.
#[derive(Deserialize)]
struct Note {}

impl ValidatedResource for Note {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Note";

    fn crd() -> Value {
        let text = json!({"type": "string"});
        let spec = json!({"type": "object", "properties": {"text": text}});
        toy_crd("Note", "notes", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {"text": "hello"}})
    }
}

fn config_map(object: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": object["metadata"]["name"]},
        "data": {"text": object["spec"]["text"]},
    })
}

fn sync(request: &SyncRequest<'_, Note>) -> Result<SyncResponse, ReconcileError> {
    SyncResponse::new().child(&config_map(request.raw_parent()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_with_owned_objects_only_passes() {
    chaos(|_| SyncReconciler::new(sync).owns([OwnedType::namespaced::<ConfigMap>()]))
        .specs(|random, _| json!({"text": random.u32(..).to_string()}))
        .expected_owned(|object| vec![config_map(object)])
        .seeds(3)
        .run()
        .await;
}
