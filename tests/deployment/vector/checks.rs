//! Checks of the pipelines of an aggregator in Pods, before they are published.

use std::time::SystemTime;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use lockstep_envtest::eventually_within;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::site::{PODS, Site, TEAM};
use crate::stand_in::VectorPod;
use crate::vector::pipelines::{Pipelines, id};

/// Type of sinks that the rules accept, and the Vector of the aggregator does not have.
pub const MISSING_SINK: &str = "websocket";

/// Returns a sink of this type, for a codec.
pub fn missing_sink(codec: &str) -> Value {
    json!({"type": MISSING_SINK, "uri": "ws://collector.example.com/", "encoding": {"codec": codec}})
}

/// Returns a sink of another type in its place.
pub fn present_sink(print_interval_secs: u64) -> Value {
    json!({
        "type": "blackhole", "uri": null, "encoding": null, "print_interval_secs": print_interval_secs,
    })
}

/// Pipeline that is changed.
pub const PIPELINE: &str = "net";

pub const CHECKS: &str = "app.kubernetes.io/component=ConfigCheck";

/// Changes a pipeline in a way that Vector rejects, and in another way that it accepts.
pub async fn decide(site: &Site, tenant: &Pipelines) {
    let mut checks = Checks::watch(site).await;
    let aggregators = VectorPod::all(site, TEAM, "Aggregator").await;
    a_rejected_change_is_not_published(site, tenant, &mut checks, &aggregators).await;
    an_accepted_change_is_published(site, tenant, &mut checks, &aggregators).await;
    no_check_is_left(site).await;
}

async fn a_rejected_change_is_not_published(
    site: &Site,
    tenant: &Pipelines,
    checks: &mut Checks,
    aggregators: &[VectorPod],
) {
    let before = published(site);
    let changed = tenant
        .change(PIPELINE, &of_sink(&missing_sink("json")))
        .await;
    changed.expect("the webhook admits it");
    let ended = checks.next_result(site).await;
    assert_eq!(ended.exit_code, 78, "{ended:?}");
    let log = ended.message.unwrap_or_default();
    let error = format!("unknown variant `{MISSING_SINK}` in `sinks.");
    assert!(
        log.contains(&format!("{error}{}`", id(PIPELINE, "out"))),
        "{log}"
    );

    let message = format!("Vector rejects the configuration: {error}out`");
    tenant
        .reports(site, PIPELINE, |status| {
            let workload = &status["workloads"][0];
            status["configCheckResult"] == true
                && workload["generation"] == 1
                && workload["message"] == message
        })
        .await;
    assert_eq!(published(site), before);
    for aggregator in aggregators {
        let report = aggregator.report(site).await;
        let sink = report.component("sinks", &id(PIPELINE, "out"));
        assert_eq!(sink["type"], "blackhole", "{report:?}");
        assert_eq!(report.rejected, None);
    }
}

async fn an_accepted_change_is_published(
    site: &Site,
    tenant: &Pipelines,
    checks: &mut Checks,
    aggregators: &[VectorPod],
) {
    let changed = tenant.change(PIPELINE, &of_sink(&present_sink(7))).await;
    changed.expect("the webhook admits it");
    let written = SystemTime::now();
    let ended = checks.next_result(site).await;
    assert_eq!(ended.exit_code, 0, "{ended:?}");
    let ended_at = ended.finished_at.expect("a time").0;
    for aggregator in aggregators {
        let runs = aggregator.report_that(site, "the accepted change", |it| {
            it.component("sinks", &id(PIPELINE, "out"))["print_interval_secs"] == 7
        });
        let loaded_at = runs.await.loaded_at();
        assert!(loaded_at >= SystemTime::from(ended_at), "{ended_at}");
        let took = loaded_at.duration_since(written).unwrap_or_default();
        println!(
            "a change that a Pod checks runs after {:.2} s",
            took.as_secs_f64()
        );
    }
    tenant
        .reports(site, PIPELINE, |status| {
            let workload = &status["workloads"][0];
            workload["generation"] == 3 && workload["message"].is_null()
        })
        .await;
}

async fn no_check_is_left(site: &Site) {
    let selector = format!("--selector={CHECKS}");
    let gone = eventually_within(PODS, "the deletion of the checks", async || {
        let objects = [
            "get",
            "pods,secrets",
            &selector,
            "-n",
            TEAM,
            "--output=name",
        ];
        site.kubectl(&objects).trim().is_empty().then_some(())
    });
    let gone = gone.await;
    gone.unwrap_or_else(|error| site.fail(&error.to_string()));
}

pub fn of_sink(sink: &Value) -> Value {
    json!({"sinks": {"out": sink}})
}

/// Returns the fingerprint of the published configuration.
fn published(site: &Site) -> String {
    let hash = "--output=jsonpath={.status.publishedConfigHash}";
    let hash = site.kubectl(&["get", "vectoraggregator/logs", "-n", TEAM, hash]);
    assert!(!hash.is_empty());
    hash
}

/// Pods that check configurations.
struct Checks(BoxStream<'static, kube::Result<WatchEvent<Pod>>>);

impl Checks {
    /// Watches the Pods of later checks. No other check runs.
    async fn watch(site: &Site) -> Self {
        no_check_is_left(site).await;
        let pods: Api<Pod> = Api::namespaced(site.cluster().client(), TEAM);
        let list = pods.list(&ListParams::default().labels(CHECKS)).await;
        let version = list.expect("a list").metadata.resource_version;
        let params = WatchParams::default().labels(CHECKS);
        let events = pods.watch(&params, &version.unwrap_or_default()).await;
        Self(events.expect("a watch").boxed())
    }

    /// Waits until the controller has deleted the next Pod. Returns how its container ended.
    async fn next_result(&mut self, site: &Site) -> ContainerStateTerminated {
        let deleted = async {
            loop {
                match self.0.next().await {
                    Some(Ok(WatchEvent::Deleted(pod))) => return Ok(pod),
                    Some(Ok(_)) => {}
                    other => return Err(format!("the watch has ended: {other:?}")),
                }
            }
        };
        let deleted = timeout(PODS, deleted).await;
        let deleted = deleted.unwrap_or_else(|_| Err("no check has ended".to_owned()));
        let pod = deleted.unwrap_or_else(|error| site.fail(&error));
        let status = pod.status.clone().unwrap_or_default();
        let mut containers = status.container_statuses.into_iter().flatten();
        let ended = containers.next().and_then(|it| it.state?.terminated);
        ended.unwrap_or_else(|| site.fail(&format!("{} has no result: {pod:?}", pod.name_any())))
    }
}
