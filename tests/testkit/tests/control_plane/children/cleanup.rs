//! Cleanup of an object by a Job before its deletion.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PropagationPolicy};
use lockstep_controller::{
    DeletionTimeouts, FinalizeOutcome, FinalizeRequest, Metrics, OwnedType, ReconcileError,
    ReconcileOutput, SyncHandler, SyncReconciler, SyncRequest, SyncResponse, UpdateStrategy,
};
use lockstep_envtest::{Cluster, eventually};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    FaultInjector, RunningController, TemporaryNamespace, When, apply, cluster_with, objects,
    operator, toy_crd, wait_for_condition, wait_until,
};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

/// Object that needs a cleanup.
#[derive(Deserialize)]
struct Estate {}

impl ValidatedResource for Estate {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Estate";

    fn crd() -> Value {
        toy_crd("Estate", "estates", "Namespaced", &json!({}))
    }

    fn example() -> Value {
        json!({})
    }
}

struct Executor;

impl SyncHandler<Estate> for Executor {
    fn sync(&self, request: &SyncRequest<'_, Estate>) -> Result<SyncResponse, ReconcileError> {
        let name = &request.raw_parent()["metadata"]["name"];
        SyncResponse::new().child(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
        }))
    }

    fn finalize(&self, deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        let name = deleted.object["metadata"]["name"].as_str();
        let container = json!({"name": "c", "image": "windup"});
        let pod = json!({"restartPolicy": "Never", "containers": [container]});
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name}, "spec": {"template": {"spec": pod}},
        });
        if deleted.children.pending_reason(&job).is_none() {
            return Ok(FinalizeOutcome::Done);
        }
        Ok(FinalizeOutcome::Waiting(ReconcileOutput {
            requeue_after: Duration::from_mins(10),
            children: vec![job],
            reads_children: true,
            ..ReconcileOutput::default()
        }))
    }
}

async fn start(
    cluster: &Cluster,
    calls: &FaultInjector,
    timeouts: DeletionTimeouts,
) -> RunningController {
    let handler = SyncReconciler::new(Executor).owns([
        OwnedType::namespaced::<ConfigMap>(),
        OwnedType::namespaced::<Job>()
            .update_strategy(UpdateStrategy::Recreate)
            .cleanup_job(),
    ]);
    let metrics = Metrics::register(&mut Registry::default());
    let run = operator(calls.client(cluster).await, handler, &metrics);
    RunningController::start(run.with_deletion_timeouts(timeouts))
}

struct Apis {
    estates: Api<DynamicObject>,
    jobs: Api<DynamicObject>,
    maps: Api<DynamicObject>,
}

impl Apis {
    fn of(cluster: &Cluster, namespace: &str) -> Self {
        let api =
            |resource: &ApiResource| Api::namespaced_with(cluster.client(), namespace, resource);
        Self {
            estates: objects::<Estate>(cluster.client(), Some(namespace)),
            jobs: api(&ApiResource::erase::<Job>(&())),
            maps: api(&ApiResource::erase::<ConfigMap>(&())),
        }
    }

    /// Creates an object and waits until it is ready.
    async fn make(&self, name: &str) {
        apply::<Estate>(&self.estates, name, &json!({})).await;
        wait_for_condition(&self.estates, name, "Ready", "True").await;
    }
}

async fn wait_until_deleted(api: &Api<DynamicObject>, name: &str) {
    wait_until(api, name, "to be deleted", |found| found.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_deleted_once_its_cleanup_job_completes_with_any_propagation_policy() {
    let cluster = cluster_with::<Estate>().await;
    let calls = FaultInjector::default();
    let _running = start(&cluster, &calls, DeletionTimeouts::default()).await;
    let Apis {
        estates,
        jobs,
        maps,
    } = &Apis::of(&cluster, "default");
    let ways = [
        ("background", PropagationPolicy::Background),
        ("foreground", PropagationPolicy::Foreground),
        ("orphan", PropagationPolicy::Orphan),
    ];
    let mut working = Vec::new();
    for (name, policy) in ways.clone() {
        Apis::of(&cluster, "default").make(name).await;
        let params = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        estates
            .delete(name, &params)
            .await
            .expect("the API server accepts the deletion");
        // No node exists that could run the Pod.
        let waits = format!("Job '{name}' has not completed");
        let found = eventually("the condition to name the Job", async || {
            let estate = estates.get(name).await.ok()?;
            let conditions = estate.data["status"]["conditions"].to_string();
            conditions.contains(&waits).then_some(())
        });
        found.await.expect("the condition names the Job");
        working.push(jobs.get(name).await.expect("the Job exists").uid());
    }
    // The garbage collector has run and has not deleted the cleanup Job.
    wait_until_deleted(maps, "foreground").await;
    wait_until(maps, "orphan", "to be orphaned", |found| {
        found.is_some_and(|found| found.owner_references().is_empty())
    })
    .await;
    for ((name, _), uid) in ways.iter().zip(working) {
        let job = jobs.get(name).await.expect("the Job still exists");
        assert_eq!(job.uid(), uid, "the Job must not be recreated");
        assert_eq!(job.metadata.deletion_timestamp, None, "{name}");
        // With an owner reference, the garbage collector would delete it at any time.
        assert_eq!(job.owner_references(), [], "{name}");
    }
    // Some of the calls that remove finalizers fail.
    calls.take_writes();
    for nth in 4..=6 {
        calls.fail("patch", "estates", nth, When::Before);
    }
    cluster.add_node("node").await.expect("the node is created");
    for (name, _) in ways {
        wait_until_deleted(estates, name).await;
        wait_until_deleted(jobs, name).await;
    }
    wait_until_deleted(maps, "background").await;
    assert!(calls.have_failed());
    let writes = calls.take_writes();
    let again = writes
        .iter()
        .find(|call| call.verb == "create" && call.resource == "jobs");
    assert_eq!(again, None, "a completed cleanup must not run again");
    maps.get("orphan")
        .await
        .expect("the propagation policy `Orphan` keeps the child");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminating_namespace_allows_no_cleanup_job_and_the_condition_reports_it() {
    let cluster = cluster_with::<Estate>().await;
    let calls = FaultInjector::default();
    let running = start(&cluster, &calls, DeletionTimeouts::default()).await;
    let namespace = TemporaryNamespace::make(cluster.client(), "leaving").await;
    let apis = Apis::of(&cluster, "leaving");
    apis.make("a").await;
    namespace.delete().await;
    let found = eventually("the condition `NamespaceTerminating`", async || {
        let estate = apis.estates.get("a").await.ok()?;
        let conditions = estate.data["status"]["conditions"].as_array()?.clone();
        let mut conditions = conditions.into_iter();
        let ready = conditions.find(|it| it["type"] == "Ready")?;
        // The other child is deleted first. The controller may notice that before the object itself is deleted.
        let is_of_job = ready["message"].to_string().contains("child Job");
        (is_of_job && ready["reason"] == "NamespaceTerminating").then_some(ready)
    });
    assert_eq!(
        found.await.expect("the condition is reported")["message"],
        "the child Job 'a' (batch/v1) cannot be created: its namespace is being deleted and accepts no new objects"
    );
    running.stop().await;
    let timeouts = DeletionTimeouts {
        force_after: Some(Duration::from_secs(1)),
        ..DeletionTimeouts::default()
    };
    let _running = start(&cluster, &calls, timeouts).await;
    namespace.wait_until_deleted().await;
}
