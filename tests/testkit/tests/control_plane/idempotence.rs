//! Steady state: no writes and few reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use lockstep_controller::{
    Metrics, OwnedType, ReconcileError, SyncReconciler, SyncRequest, SyncResponse,
};
use lockstep_envtest::{Cluster, eventually_within};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{RunningController, apply, install_crd, objects, operator, toy_crd};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

const OBJECTS: usize = 1_000;

/// Number of times that every object is reconciled again although nothing has changed.
const RESYNCS: u64 = 10;

const RESYNC: Duration = Duration::from_secs(1);

/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_mins(5);

/// An object with one child.
#[derive(Deserialize)]
struct Parent {}

impl ValidatedResource for Parent {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Parent";

    fn crd() -> Value {
        toy_crd("Parent", "parents", "Namespaced", &json!({}))
    }

    fn example() -> Value {
        json!({})
    }
}

fn sync(request: &SyncRequest<'_, Parent>) -> Result<SyncResponse, ReconcileError> {
    let name = &request.raw_parent()["metadata"]["name"];
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
    });
    Ok(SyncResponse::new().child(&child)?.requeue_after(RESYNC))
}

struct Counted {
    running: RunningController,
    registry: Registry,
}

impl Counted {
    fn start(cluster: &Cluster) -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let handler = SyncReconciler::new(sync).owns([OwnedType::namespaced::<ConfigMap>()]);
        let running = RunningController::start(operator(cluster.client(), handler, &metrics));
        Self { running, registry }
    }

    /// Waits for this number of further reconciliations.
    async fn wait_for_reconciliations(&self, wanted: u64) {
        let before = self.count();
        let done = eventually_within(DEADLINE, "reconciliations", async || {
            (self.count() - before >= wanted).then_some(())
        });
        done.await.expect("the reconciliations happen");
    }

    fn count(&self) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("the metrics can be encoded");
        let mut lines = text.lines();
        let done =
            "controller_runtime_reconcile_total{controller=\"parent\",result=\"requeue_after\"} ";
        let count = lines.find_map(|line| line.strip_prefix(done)?.parse().ok());
        count.unwrap_or_default()
    }
}

/// Counts, by verb, the calls of this test in the audit log from an offset on.
fn calls(log: &Path, from: usize) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(log).expect("the audit log is readable");
    let mut calls = BTreeMap::new();
    for line in text[from..].lines() {
        let event: Value = serde_json::from_str(line).expect("each line of the audit log is JSON");
        // The garbage collector and kubectl send a user agent.
        let is_ours = event["userAgent"]
            .as_str()
            .is_none_or(|agent| agent.is_empty());
        if is_ours {
            let verb = event["verb"].as_str().unwrap_or_default().to_owned();
            *calls.entry(verb).or_default() += 1;
        }
    }
    calls
}

fn size(log: &Path) -> usize {
    let size = fs::metadata(log).expect("the audit log exists").len();
    usize::try_from(size).expect("the size fits into usize")
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_in_their_desired_state_are_never_written() {
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let (policy, log) = (
        folder.path().join("policy.yaml"),
        folder.path().join("audit.log"),
    );
    let rules = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata", "resources": [
            {"group": "toys.example.com"},
            {"group": "", "resources": ["configmaps"]},
            {"group": "events.k8s.io"},
        ]}],
    });
    fs::write(&policy, rules.to_string()).expect("the file can be written");
    let audited = [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
    ];
    let audited = [audited[0].as_str(), audited[1].as_str()];
    let cluster = Cluster::start_with(&audited)
        .await
        .expect("the cluster starts");
    install_crd(&cluster.client(), Parent::crd()).await;
    let parents = objects::<Parent>(cluster.client(), Some("default"));
    stream::iter(0..OBJECTS)
        .for_each_concurrent(16, async |at| {
            apply::<Parent>(&parents, &format!("p{at}"), &json!({})).await;
        })
        .await;
    let created = size(&log);
    let first = Counted::start(&cluster);
    // Every object has its child and its status, and the reconciliations that both cause.
    let ready = eventually_within(DEADLINE, "all objects to be ready", async || {
        let all = parents.list(&Default::default()).await.ok()?;
        let ready = |parent: &DynamicObject| {
            parent
                .data
                .pointer("/status/conditions")
                .is_some_and(|all| all.to_string().contains("Available"))
        };
        all.items.iter().all(ready).then_some(())
    });
    ready.await.expect("all objects become ready");
    let each = OBJECTS as u64;
    first.wait_for_reconciliations(2 * each).await;

    let (at_first, in_between) = (calls(&log, created), size(&log));
    first.wait_for_reconciliations(RESYNCS / 2 * each).await;
    first.running.stop().await;
    let second = Counted::start(&cluster);
    second.wait_for_reconciliations(RESYNCS / 2 * each).await;
    second.running.stop().await;
    let idle_calls = calls(&log, in_between);
    println!(
        "{OBJECTS} objects: initial calls {at_first:?}; calls during {RESYNCS} resyncs and a restart: {idle_calls:?}"
    );
    let written: usize = ["create", "update", "patch", "delete"]
        .iter()
        .filter_map(|verb| idle_calls.get(*verb))
        .sum();
    assert_eq!(written, 0, "{idle_calls:?}");
    assert_eq!(
        at_first.get("patch"),
        Some(&OBJECTS),
        "one status patch for each object"
    );
}
