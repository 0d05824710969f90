//! Reloads that succeed, are refused, or do not end.

use lockstep_envtest::eventually_within;
use serde_json::{Value, json};

use crate::site::{NAMESPACE, PODS, Site, TEAM};
use crate::stand_in::VectorPod;
use crate::vector::checks::missing_sink;
use crate::vector::pipelines::{self, Pipelines};

/// Time after which a reload that does not end is reported, in place of minutes.
const TIMEOUT: &str = "15s";

/// Address without a server.
const UNSERVED: &str = "http://127.0.0.1:9/";

/// Sets the time after which a reload that does not end is reported.
pub fn set_timeout(site: &Site) {
    let argument = format!("--vector-reload-timeout={TIMEOUT}");
    let read = [
        "get",
        "deployment/lockstep",
        "-n",
        NAMESPACE,
        "--output=json",
    ];
    let deployment: Value = serde_json::from_str(&site.kubectl(&read)).expect("JSON");
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let names = containers
        .into_iter()
        .flatten()
        .map(|container| &container["name"]);
    let index = names
        .into_iter()
        .position(|name| *name == "controller")
        .expect("a controller");
    let place = format!("/spec/template/spec/containers/{index}/args/-");
    let patch = json!([{"op": "add", "path": place, "value": argument}]).to_string();
    let patched = [
        "patch",
        "deployment/lockstep",
        "-n",
        NAMESPACE,
        "--type=json",
        "--patch",
    ];
    site.kubectl(&[&patched[..], &[&patch]].concat());
}

/// Returns the agent that runs afterwards.
pub async fn are_reported(site: &Site, tenant: &Pipelines, agent: VectorPod) -> VectorPod {
    loaded_by_all(site).await;
    let is_loaded = |status: &Value| {
        let workload = &status["workloads"][0];
        workload["loaded"].is_i64() && workload["loaded"] == workload["generation"]
    };
    tenant.reports(site, "p0", is_loaded).await;

    a_refusal_is_reported(site, tenant, &agent).await;
    loaded_by_all(site).await;
    a_reload_that_does_not_end_is_reported_and_its_pod_evicted(site, tenant, agent).await
}

/// The controller does not know that the Vector of the agent lacks a sink.
async fn a_refusal_is_reported(site: &Site, tenant: &Pipelines, agent: &VectorPod) {
    let mut refused = pipelines::logs("refused");
    refused["sinks"]["out"] = missing_sink("json");
    refused["sinks"]["out"]["inputs"] = json!(["mark"]);
    tenant.create("refused", &refused).await;
    let status = status_that(site, "the refusal", |status| {
        status["notLoaded"]["refused"] == 1
    })
    .await;
    assert_eq!(status["loaded"], "0/1");
    let message = status["notLoaded"]["pods"][0].as_str().unwrap_or_default();
    let expected = format!("{} refuses the configuration: ", agent.name);
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.contains("unknown variant `websocket`"), "{message}");
    let failed = condition(&status);
    assert_eq!(failed["status"], "True", "{status:#}");
    let events = [
        "get",
        "events",
        "-n",
        TEAM,
        "--field-selector=reason=ReloadFailed",
        "--output=name",
    ];
    let recorded = eventually_within(PODS, "an Event", async || {
        (!site.kubectl(&events).trim().is_empty()).then_some(())
    });
    recorded
        .await
        .unwrap_or_else(|error| site.fail(&error.to_string()));
    // It is published, and no Pod has it.
    tenant
        .reports(site, "refused", |status| {
            status["workloads"][0]["generation"] == 1 && status["workloads"][0]["loaded"].is_null()
        })
        .await;
    tenant.delete("refused").await;
    let resolved = status_that(site, "the end of the refusal", |status| {
        status["loaded"] == "1/1"
    });
    assert!(resolved.await["notLoaded"].is_null());
    status_that(site, "the condition", |it| {
        condition(it)["status"] == "False"
    })
    .await;
}

async fn a_reload_that_does_not_end_is_reported_and_its_pod_evicted(
    site: &Site,
    tenant: &Pipelines,
    agent: VectorPod,
) -> VectorPod {
    let sink = |uri: &str| json!({"type": "http", "inputs": ["mark"], "uri": uri, "encoding": {"codec": "json"}});
    let mut stuck = pipelines::logs("stuck");
    stuck["sinks"]["out"] = sink(UNSERVED);
    tenant.create("stuck", &stuck).await;
    let id = pipelines::id("stuck", "out");
    agent
        .report_that(site, "the sink without a server", |it| {
            it.component("sinks", &id)["uri"] == UNSERVED
        })
        .await;
    loaded_by_all(site).await;
    let mended = json!({"sinks": {"out": sink("http://collector.example.com/")}});
    tenant
        .change("stuck", &mended)
        .await
        .expect("a valid change");
    let mut blocking = String::new();
    let replaced = eventually_within(PODS, "another agent", async || {
        let status = status(site);
        for pod in status["notLoaded"]["pods"].as_array().into_iter().flatten() {
            let text = pod.as_str().unwrap_or_default();
            if text.contains("does not end") {
                text.clone_into(&mut blocking);
            }
        }
        let agents = VectorPod::all(site, TEAM, "Agent").await;
        agents.into_iter().find(|pod| pod.name != agent.name)
    });
    let replaced = replaced.await;
    let replaced =
        replaced.unwrap_or_else(|error| site.fail(&format!("{error}: {:#}", status(site))));
    let names = format!("components with warnings: {TEAM}/stuck out");
    assert!(blocking.contains(&names), "{blocking}");
    loaded_by_all(site).await;
    let report = replaced.report(site).await;
    let uri = &report.component("sinks", &id)["uri"];
    assert_eq!(uri, "http://collector.example.com/");
    tenant.delete("stuck").await;
    replaced
}

async fn loaded_by_all(site: &Site) {
    status_that(site, "the agent with the configuration", |it| {
        it["loaded"] == "1/1"
    })
    .await;
}

fn condition(status: &Value) -> Value {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == "ReloadFailed");
    found.cloned().unwrap_or_default()
}

fn status(site: &Site) -> Value {
    let read = ["get", "vector/logs", "-n", TEAM, "--output=json"];
    let object: Value = serde_json::from_str(&site.kubectl(&read)).unwrap_or_default();
    object["status"].clone()
}

async fn status_that(site: &Site, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let found = eventually_within(PODS, what, async || {
        Some(status(site)).filter(|status| is_so(status))
    });
    let found = found.await;
    found.unwrap_or_else(|error| site.fail(&format!("{error}: {:#}", status(site))))
}
