//! Measurement of one operator: from its first start until all objects are ready, and from a restart until it is idle.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_harness::audit::Audit;
use bench_harness::usage::{self, Memory};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use lockstep_envtest::{Cluster, eventually};
use lockstep_shared_validation::ValidatedResource;
use serde_json::json;

use crate::batch::{Batch, resource};
use crate::implementations::{Implementation, Running};

/// Time limit of each step.
const DEADLINE: Duration = Duration::from_mins(20);

/// Interval of the checks of a running operator.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time without work after which an operator counts as idle.
const IDLE_PERIOD: Duration = Duration::from_millis(500);

/// Number of calls by verb.
type Calls = BTreeMap<String, usize>;

/// Results of one operator.
pub(crate) struct Measured {
    pub(crate) converged: Part,
    pub(crate) restarted: Part,
}

/// Results of one phase.
pub(crate) struct Part {
    pub(crate) seconds: f64,
    pub(crate) cpu: f64,
    /// Memory at the end of the phase.
    pub(crate) memory: Memory,
    pub(crate) calls: Calls,
}

pub(crate) async fn measure(side: &Implementation, objects: usize) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir()?;
    let audit = Audit::within(
        folder.path(),
        &json!([{"level": "Metadata", "resources": [
            {"group": "scale.example.com"},
            {"group": "", "resources": ["configmaps", "events"]},
            {"group": "events.k8s.io"},
        ]}]),
    )?;
    let arguments = audit.arguments();
    let cluster = Cluster::start_with(&[&arguments[0], &arguments[1]]).await?;
    let text = "a text of some length, as configuration has it; ".repeat(4);
    let batches = make(&cluster, objects, |_| text.clone()).await?;

    let from = audit.position()?;
    let started = Instant::now();
    let mut running = side.start(&cluster.kubeconfig(), folder.path())?;
    all_ready(&batches, objects).await?;
    let seconds = started.elapsed().as_secs_f64();
    wait_until_idle(&mut running, objects).await?;
    let converged = part(&running, seconds, calls(&audit, side.name, from)?)?;
    drop(running);

    let from = audit.position()?;
    let started = Instant::now();
    let mut running = side.start(&cluster.kubeconfig(), folder.path())?;
    let since = wait_until_idle(&mut running, objects).await?;
    let seconds = (since - started).as_secs_f64();
    let restarted = part(&running, seconds, calls(&audit, side.name, from)?)?;
    Ok(Measured {
        converged,
        restarted,
    })
}

/// Returns the number of calls of a user agent from an offset of the audit log on.
fn calls(audit: &Audit, of: &str, from: u64) -> anyhow::Result<Calls> {
    let mut calls = Calls::new();
    for call in audit.calls(from)? {
        if call.user_agent == of {
            *calls.entry(call.verb).or_default() += 1;
        }
    }
    Ok(calls)
}

fn part(running: &Running, seconds: f64, calls: Calls) -> anyhow::Result<Part> {
    Ok(Part {
        seconds,
        cpu: usage::cpu(running.pid())?,
        memory: usage::memory(running.pid())?,
        calls,
    })
}

/// Creates objects; a function returns the text of each.
pub(crate) async fn make(
    cluster: &Cluster,
    objects: usize,
    text: impl Fn(usize) -> String,
) -> anyhow::Result<Api<DynamicObject>> {
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let crd = serde_json::from_value(Batch::crd())?;
    crds.create(&PostParams::default(), &crd).await?;
    let resource = resource();
    let batches: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let object = |at: usize| {
        let spec = json!({"text": text(at)});
        DynamicObject::new(&format!("batch-{at}"), &resource).data(json!({"spec": spec}))
    };
    eventually("the first object to be stored", async || {
        batches
            .create(&PostParams::default(), &object(0))
            .await
            .ok()
    })
    .await?;
    stream::iter(1..objects)
        .map(Ok::<_, kube::Error>)
        .try_for_each_concurrent(16, async |at| {
            batches.create(&PostParams::default(), &object(at)).await?;
            Ok(())
        })
        .await?;
    Ok(batches)
}

/// Waits until every object is ready.
async fn all_ready(batches: &Api<DynamicObject>, objects: usize) -> anyhow::Result<()> {
    let events = watcher(batches.clone(), watcher::Config::default());
    let mut events = std::pin::pin!(events.default_backoff().applied_objects());
    let mut ready = HashSet::new();
    let all = async {
        while let Some(object) = events.next().await {
            let Ok(object) = object else { continue };
            let conditions = object.data.pointer("/status/conditions");
            let conditions = conditions.and_then(|conditions| conditions.as_array());
            let mut conditions = conditions.into_iter().flatten();
            if conditions.any(|one| one["type"] == "Ready" && one["status"] == "True") {
                ready.insert(object.metadata.name);
            }
            if ready.len() == objects {
                break;
            }
        }
    };
    tokio::time::timeout(DEADLINE, all)
        .await
        .context("not all objects became ready")
}

/// Waits until every object has been reconciled and no work is left. Returns the time since which the operator is idle.
async fn wait_until_idle(running: &mut Running, objects: usize) -> anyhow::Result<Instant> {
    let started = Instant::now();
    let mut since = None;
    loop {
        ensure!(
            started.elapsed() < DEADLINE,
            "the operator does not become idle"
        );
        let observed_at = Instant::now();
        let counts = running.reconciliations().await?;
        let is_idle = counts.is_some_and(|(reconciliations, waiting)| {
            reconciliations >= objects as u64 && waiting == 0
        });
        since = is_idle.then(|| {
            since.map_or((observed_at, counts), |since: (Instant, _)| {
                // Work between two checks ends the idle time.
                if since.1 == counts {
                    since
                } else {
                    (observed_at, counts)
                }
            })
        });
        if let Some((since, _)) = since
            && since.elapsed() >= IDLE_PERIOD
        {
            return Ok(since);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
