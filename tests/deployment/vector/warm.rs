//! Checks of the pipelines of an aggregator in a Pod that keeps running.

use std::time::SystemTime;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use lockstep_envtest::eventually_within;
use serde_json::{Value, json};

use crate::site::{PODS, Site, TEAM};
use crate::stand_in::VectorPod;
use crate::vector::checks::{CHECKS, MISSING_SINK, PIPELINE, missing_sink, of_sink, present_sink};
use crate::vector::pipelines::{Pipelines, id};

/// Changes a pipeline in a way that Vector rejects, and in another way that it accepts. No Pod is started for that.
pub async fn decide(site: &Site, tenant: &Pipelines) {
    validator_is_ready(site).await;
    let version = pods_version(site).await;

    let mut rejected = missing_sink("text");
    rejected["print_interval_secs"] = Value::Null;
    let changed = tenant.change(PIPELINE, &of_sink(&rejected)).await;
    changed.expect("the webhook admits it");
    let written = SystemTime::now();
    let message = format!(
        "Vector rejects the configuration: unknown variant `{MISSING_SINK}` in `sinks.out`"
    );
    tenant
        .reports(site, PIPELINE, |status| {
            let workload = &status["workloads"][0];
            workload["generation"] == 3 && workload["message"] == message
        })
        .await;
    println!(
        "a rejection by a validator is reported after {:.2} s",
        since(written)
    );

    let changed = tenant.change(PIPELINE, &of_sink(&present_sink(8))).await;
    changed.expect("the webhook admits it");
    let written = SystemTime::now();
    for aggregator in VectorPod::all(site, TEAM, "Aggregator").await {
        let runs = aggregator.report_that(site, "the accepted change", |it| {
            it.component("sinks", &id(PIPELINE, "out"))["print_interval_secs"] == 8
        });
        let took = runs.await.loaded_at().duration_since(written);
        println!(
            "a change that a validator checks runs after {:.2} s",
            took.unwrap_or_default().as_secs_f64()
        );
    }
    assert_eq!(checks_since(site, &version).await, [""; 0]);
    let log = site.kubectl(&["logs", "deployment/logs-aggregator-validator", "-n", TEAM]);
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let checks = lines.filter(|line| line["message"] == "validated a configuration");
    let checks: Vec<_> = checks.map(|line| line["milliseconds"].clone()).collect();
    assert!(checks.len() >= 2, "{log}");
    println!("the validator took {checks:?} ms");
}

async fn validator_is_ready(site: &Site) {
    let warm = json!({"spec": {"configCheck": {"warm": true}}}).to_string();
    let aggregator = ["patch", "vectoraggregator/logs", "-n", TEAM, "--type=merge"];
    site.kubectl(&[&aggregator[..], &["--patch", &warm]].concat());
    let switched_on = SystemTime::now();
    let mut last = String::new();
    let ready = eventually_within(PODS, "a validator", async || {
        let state = "--output=jsonpath={.status.validator}";
        last = site.kubectl(&["get", "vectoraggregator/logs", "-n", TEAM, state]);
        (last == "Ready").then_some(())
    });
    ready.await.unwrap_or_else(|error| {
        let pods = site.kubectl(&["describe", "pods", "-n", TEAM]);
        site.fail(&format!("{error}: {last}\n{pods}"))
    });
    println!("a validator is ready after {:.2} s", since(switched_on));
}

fn since(time: SystemTime) -> f64 {
    time.elapsed().unwrap_or_default().as_secs_f64()
}

async fn pods_version(site: &Site) -> String {
    let pods: Api<Pod> = Api::namespaced(site.cluster().client(), TEAM);
    let list = pods.list(&ListParams::default().limit(1)).await;
    list.expect("a list")
        .metadata
        .resource_version
        .expect("a version")
}

/// Returns the names of the Pods for one check that were created after a resource version.
async fn checks_since(site: &Site, version: &str) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(site.cluster().client(), TEAM);
    // The API server sends all earlier events first.
    let params = WatchParams::default().labels(CHECKS).timeout(1);
    let events = pods.watch(&params, version).await.expect("a watch");
    let created = events.filter_map(async |event| match event {
        Ok(WatchEvent::Added(pod)) => Some(pod.name_any()),
        _ => None,
    });
    created.collect().await
}
