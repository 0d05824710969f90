//! Pipelines of tenants that share a workload: what one of them does neither stops another one nor takes anything from it.

use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::audit::lockstep;
use crate::env::TestEnv;
use crate::running_vector::{AGENT, logs, object, start_without_pods};

/// Secret with the values of the agents' pipelines.
const VALUES: &str = "secret/logs-agent-secret-assets";

/// Returns an object in a namespace.
fn in_namespace(namespace: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let mut object = object(kind, name, spec);
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// Returns a pipeline that sends logs to a URI.
fn sending_to(namespace: &str, name: &str, uri: &str) -> Value {
    let mut spec = logs("out");
    spec["sinks"]["out"] = json!({
        "type": "http", "inputs": ["in"], "uri": uri, "encoding": {"codec": "json"},
    });
    in_namespace(namespace, "VectorPipeline", name, &spec)
}

/// Starts agents with a pipeline of a tenant in the namespace `victim`.
async fn start(agent: &Value) -> TestEnv {
    let env = start_without_pods(crate::running_vector::KINDS).await;
    for namespace in ["victim", "a", "a-b"] {
        env.kubectl(&["create", "namespace", namespace])
            .expect("a namespace");
    }
    env.apply(&object("Vector", "logs", &json!({"agent": agent})));
    env.apply(&sending_to("victim", "p", "http://victim/0"));
    sends_to(&env, "http://victim/0").await;
    env
}

/// Waits until a sink of the configuration has a URI.
async fn sends_to(env: &TestEnv, uri: &str) -> Value {
    let is_sent = |config: &Value| {
        let sinks = config["sinks"].as_object().into_iter().flatten();
        sinks.into_iter().any(|(_, sink)| sink["uri"] == uri)
    };
    env.configuration_that(uri, AGENT, is_sent).await
}

/// Changes the pipeline of the victim, and waits until the change is published.
async fn the_victim_is_published(env: &TestEnv, uri: &str) -> Value {
    env.apply(&sending_to("victim", "p", uri));
    sends_to(env, uri).await
}

/// Waits until a workload reports a pipeline that does not run, with this text.
async fn reports(env: &TestEnv, workload: &str, pipeline: &str, text: &str) {
    let reported = eventually(text, async || {
        let found = env.get(workload);
        let problems = found["status"]["notRunning"].to_string();
        let is_so = problems.contains(pipeline) && problems.contains(text);
        is_so.then_some(())
    });
    reported
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
}

/// Returns the values of Secrets that are published.
fn values(env: &TestEnv) -> String {
    let values = env.get(VALUES)["data"].clone();
    values.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_with_which_vector_does_not_start_keeps_the_last_one() {
    let env = start(&json!({})).await;
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own", "namespace": "default"},
            "stringData": {"u": value},
        })
    };
    let mut pipeline = sending_to("default", "tenant", "SECRET[s.u]");
    pipeline["spec"]["secret"] = json!({"s": {"type": "kubernetes_secret", "name": "own"}});
    env.apply(&secret(":::not a uri"));
    env.apply(&pipeline);
    reports(&env, "vector/logs", "default/tenant", "spec.sinks[out].uri").await;
    let config = the_victim_is_published(&env, "http://victim/1").await;
    assert!(
        config["sinks"]["default__tenant__out"].is_null(),
        "{config}"
    );
    env.apply(&secret("http://attacker/"));
    sends_to(&env, "SECRET[k8s.default__tenant__s.u]").await;
    let valid = values(&env);
    // The webhook sees no change of a Secret, and the Pods of a check do not build the components.
    for mode in ["InProcess", "Pod"] {
        let agent = json!({"agent": {"configCheck": {"mode": mode}}});
        env.apply(&object("Vector", "logs", &agent));
        env.apply(&secret(&format!(":::not {mode}")));
        reports(&env, "vector/logs", "default/tenant", "(`own`)").await;
        assert_eq!(values(&env), valid, "{mode}");
        let message = env.get("vector/logs")["status"]["notRunning"].to_string();
        assert!(!message.contains(":::not"), "{message}");
        if mode == "InProcess" {
            the_victim_is_published(&env, "http://victim/2").await;
            env.apply(&secret("http://attacker/"));
            is_reported_no_more(&env, "default/tenant").await;
        }
    }
}

/// Waits until the agents report no problem of a pipeline.
async fn is_reported_no_more(env: &TestEnv, pipeline: &str) {
    let cured = eventually("no problem", async || {
        let problems = env.get("vector/logs")["status"]["notRunning"].to_string();
        (!problems.contains(pipeline)).then_some(())
    });
    cured
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_pipeline_takes_neither_names_nor_the_metrics_of_the_agents() {
    let env = start(&json!({"componentNames": "dashes", "internalMetrics": true})).await;
    env.apply(&sending_to("a-b", "c", "http://first/"));
    sends_to(&env, "http://first/").await;
    env.apply(&sending_to("a", "b-c", "http://later/"));
    reports(&env, "vector/logs", "a/b-c", "has the name `a-b-c-").await;
    let config = the_victim_is_published(&env, "http://victim/1").await;
    assert_eq!(config["sinks"]["a-b-c-out"]["uri"], "http://first/");

    let mut exporter = logs("out");
    exporter["transforms"] = json!({"m": {
        "type": "log_to_metric", "inputs": ["in"], "metrics": [{"type": "counter", "field": "message"}],
    }});
    exporter["sinks"]["out"] =
        json!({"type": "prometheus_exporter", "inputs": ["m"], "address": "0.0.0.0:9598"});
    let at_theirs = in_namespace("a", "VectorPipeline", "exporter", &exporter);
    env.apply(&at_theirs);
    let found = env
        .condition_of(&env.objects(&at_theirs), "exporter", "Valid", "False")
        .await;
    assert!(found.message.contains("Vector's own metrics"), "{found:?}");
    let config = the_victim_is_published(&env, "http://victim/2").await;
    assert!(
        config["sinks"]["internalMetricsSink"].is_object(),
        "{config}"
    );
    exporter["sinks"]["out"]["address"] = "0.0.0.0:9000".into();
    env.apply(&in_namespace("a", "VectorPipeline", "exporter", &exporter));
    let config = env
        .configuration_that("the exporter", AGENT, |config| {
            config["sinks"]["a-exporter-out"].is_object()
        })
        .await;
    assert!(
        config["sinks"]["internalMetricsSink"].is_object(),
        "{config}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_takes_no_more_than_its_quota() {
    let mut env = start(&json!({})).await;
    let settings = "settings: {vector: {quota: {pipelines: 2}}}";
    env.installation.set_policy(settings).expect("a policy");
    // It reads the policy before it begins: later, the third pipeline could run before the policy is in force.
    let restarted = env.installation.restart_controller_with(&[]);
    restarted.expect("the process starts");
    for name in ["p", "q"] {
        env.apply(&sending_to("a", name, &format!("http://{name}/")));
        sends_to(&env, &format!("http://{name}/")).await;
    }
    // It comes before the others by its name.
    env.apply(&sending_to("a", "first", "http://first/"));
    reports(
        &env,
        "vector/logs",
        "a/first",
        "2 for the pipelines of the namespace `a`",
    )
    .await;
    let config = the_victim_is_published(&env, "http://victim/1").await;
    assert!(config["sinks"]["a__first__out"].is_null(), "{config}");
    let policy = env.cluster.directory().join("quota.yaml");
    std::fs::write(&policy, settings).expect("a file");
    let audited = lockstep(&env, &["audit", "--policy", &policy.to_string_lossy()]);
    let audited = String::from_utf8_lossy(&audited.stdout).into_owned();
    let finding = "Vector default/logs: the pipelines of the namespace `a` take 3 pipelines, and 2 are allowed";
    assert!(
        audited.contains("quota-exceeded") && audited.contains(finding),
        "{audited}"
    );
    env.apply(&sending_to("a", "p", "http://changed/"));
    sends_to(&env, "http://changed/").await;
    env.kubectl(&["delete", "vectorpipeline/q", "--namespace=a"])
        .expect("it is deleted");
    sends_to(&env, "http://first/").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_somebody_else_concerns_the_pipelines_that_have_its_name() {
    let env = start_without_pods(crate::running_vector::KINDS).await;
    let listening = |name: &str, port: u16, annotations: &Value| {
        let spec = json!({
            "sources": {"in": {"type": "http_server", "address": format!("0.0.0.0:{port}")}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
        });
        let mut pipeline = object("VectorPipeline", name, &spec);
        pipeline["metadata"]["annotations"] = annotations.clone();
        pipeline
    };
    for name in ["foreign", "agg-aggregator-taken"] {
        env.apply(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "foreign"}},
        }));
    }
    env.apply(&object("VectorAggregator", "agg", &json!({})));
    let chosen = json!({"observability.kaasops.io/service-name": "foreign"});
    env.apply(&listening("chosen", 9001, &chosen));
    env.apply(&listening("taken", 9002, &json!({})));
    env.apply(&listening("good", 9003, &json!({})));
    let is_published = |config: &Value| config["sources"]["default__good__in"].is_object();
    let configuration = ("agg-aggregator", "config.json");
    let config = env
        .configuration_that("the pipeline", configuration, is_published)
        .await;
    assert!(
        config["sources"]["default__chosen__in"].is_null(),
        "{config}"
    );
    for (pipeline, service) in [("chosen", "`foreign`"), ("taken", "`agg-aggregator-taken`")] {
        reports(&env, "vectoraggregator/agg", pipeline, service).await;
    }
    let own = eventually("the Service", async || {
        Some(env.get("service/agg-aggregator-good")).filter(Value::is_object)
    });
    own.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let selector = &env.get("service/foreign")["spec"]["selector"];
    assert_eq!(*selector, json!({"app": "foreign"}));
    env.apply(&listening("chosen", 9001, &json!({})));
    env.configuration_that("the other name", configuration, |config| {
        config["sources"]["default__chosen__in"].is_object()
    })
    .await;
    one_after_the_other(&env).await;
}

/// Pipelines of which only one may run, and of which the first ones have names of Services of others: each that waits makes room for
/// the next one.
async fn one_after_the_other(env: &TestEnv) {
    let quota = "settings: {vector: {quota: {pipelines: 1}}}";
    env.installation.set_policy(quota).expect("a policy");
    // The other aggregator must not run one of them, and own its Service.
    reports(env, "vectoraggregator/agg", "default/taken", "0 are left").await;
    let selector = json!({"selector": {"matchLabels": {"run-by": "few"}}});
    for (name, service, port) in [
        ("a", "foreign", 9011),
        ("b", "agg-aggregator-taken", 9012),
        ("c", "few-own", 9013),
    ] {
        let spec = json!({
            "sources": {"in": {"type": "http_server", "address": format!("0.0.0.0:{port}")}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
        });
        let mut pipeline = object("VectorPipeline", name, &spec);
        pipeline["metadata"]["labels"] = json!({"run-by": "few"});
        pipeline["metadata"]["annotations"] =
            json!({"observability.kaasops.io/service-name": service});
        env.apply(&pipeline);
    }
    env.apply(&object("VectorAggregator", "few", &selector));
    let configuration = ("few-aggregator", "config.json");
    let config = env
        .configuration_that("the third pipeline", configuration, |config| {
            config["sources"]["default__c__in"].is_object()
        })
        .await;
    for waiting in ["default__a__in", "default__b__in"] {
        assert!(config["sources"][waiting].is_null(), "{config}");
    }
}
