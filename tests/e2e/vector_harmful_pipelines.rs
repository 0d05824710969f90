//! Pipelines of one tenant that were stored without the rules which deny them: those of the others are published.

use std::process::Command;

use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::running_vector::{AGENT, logs, object, start_without_pods};

/// CRD of the pipelines.
const CRD: &str = "crd/vectorpipelines.observability.kaasops.io";

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_none_keep_no_other_pipeline_from_being_published() {
    let env = unprotected().await;
    // The CRD of an earlier release.
    let name = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/secret/additionalProperties/properties/name/pattern";
    let without_pattern = json!([{"op": "remove", "path": name}]).to_string();
    env.kubectl(&["patch", CRD, "--type=json", "--patch", &without_pattern])
        .expect("the CRD is changed");
    for (at, name) in ["?watch=true", "a b", "..", "a/../../configmaps", "a#b"]
        .into_iter()
        .enumerate()
    {
        let mut spec = logs("out");
        spec["secret"] = json!({"s": {"type": "kubernetes_secret", "name": name}});
        spec["sinks"]["out"] = json!({
            "type": "http", "inputs": ["in"], "uri": "http://example.com/", "encoding": {"codec": "json"},
            "auth": {"strategy": "bearer", "token": "SECRET[s.k]"},
        });
        let bad = object("VectorPipeline", &format!("bad-{at}"), &spec);
        let stored = eventually("the API server to use the changed CRD", async || {
            env.kubectl_apply(&bad).ok()
        });
        stored
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
        let found = env
            .condition_of(&env.objects(&bad), &format!("bad-{at}"), "Valid", "False")
            .await;
        assert!(found.message.contains("spec.secret.s.name"), "{found:?}");
        let good = format!("good-{at}");
        env.apply(&object("VectorPipeline", &good, &logs("out")));
        publishes(&env, &good).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_nested_too_deep_stops_nothing_and_is_named() {
    let env = unprotected().await;
    let mut deep = json!(1);
    for _ in 0..300 {
        deep = json!({"b": deep});
    }
    let mut spec = logs("out");
    spec["sinks"]["out"]["batch"] = json!({"ignored": deep});
    let deep = object("VectorPipeline", "deep", &spec);
    env.kubectl_apply(&deep).expect("it is stored");
    let reason = "jsonpath={.status.conditions[?(@.type=='Valid')].message}";
    let reported = eventually("the condition", async || {
        let message = env
            .kubectl(&["get", "vectorpipeline/deep", "--output", reason])
            .ok()?;
        message.contains("[nesting]").then_some(())
    });
    reported
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    // Each change is an event of the watch.
    for at in 0..5 {
        let changed = format!("a={at}");
        env.kubectl(&["annotate", "vectorpipeline/deep", &changed, "--overwrite"])
            .expect("annotated");
        let good = format!("good-{at}");
        env.apply(&object("VectorPipeline", &good, &logs("out")));
        publishes(&env, &good).await;
    }
    // Commands that list the objects.
    for (command, named) in [
        (&["audit"][..], "default/deep"),
        (&["status"], "default/deep"),
        (&["uninstall", "--dry-run"], "VectorPipeline"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(command)
            .env("KUBECONFIG", env.cluster.kubeconfig())
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(named), "{command:?}: {text}{errors}");
        assert!(!errors.contains("recursion"), "{command:?}: {errors}");
    }
    env.kubectl(&["delete", "vectorpipeline/deep", "--timeout=60s"])
        .expect("it is deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_fields_that_a_tenant_has_written_stop_nothing() {
    let env = unprotected().await;
    env.kubectl(&["create", "namespace", "team"])
        .expect("a namespace");
    let ours = ["--output=name", "--selector=lockstep.dev/controller"];
    let ours = env.kubectl(&[&["get", "serviceaccounts"], &ours[..]].concat());
    let ours = ours.expect("ServiceAccounts");
    let ours = ours.lines().next().expect("one of the agents");
    let labels = ["get", ours, "--output=jsonpath={.metadata.labels}"];
    let labels = env.kubectl(&labels).expect("labels");
    let labels: Value = serde_json::from_str(&labels).expect("JSON");
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({"f:a": deep});
    }
    // The API server writes the time in UTC, in the year 10000.
    for (name, time, fields) in [
        (
            "time",
            "9999-12-31T23:59:59-14:00",
            json!({"f:secrets": {}}),
        ),
        ("deep", "2024-01-01T00:00:00Z", deep),
    ] {
        let entry = json!({
            "manager": "tenant", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": time,
            "fieldsV1": fields,
        });
        let object = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "team", "labels": labels},
        });
        env.kubectl_apply(&object).expect("it is created");
        let patch = json!({"metadata": {"managedFields": [entry]}}).to_string();
        let service_account = format!("serviceaccount/{name}");
        let patch = [
            "patch",
            &service_account,
            "--namespace=team",
            "--type=merge",
            "--patch",
            &patch,
        ];
        env.kubectl(&patch).expect("they are stored");
    }
    env.kubectl(&["delete", ours]).expect("it is deleted");
    let restored = eventually("the ServiceAccount of the agents", async || {
        env.kubectl(&["get", ours]).ok()
    });
    restored
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let metrics = env.metrics(&env.installation.controller_health_url()).await;
    let failures =
        "lockstep_watch_failures_total{controller=\"vector\",resource=\"serviceaccounts\"}";
    let failures: Vec<_> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(failures))
        .collect();
    assert_eq!(failures, [" 0"], "{metrics}");
}

/// Starts agents that run a pipeline, and removes the webhook configurations.
async fn unprotected() -> TestEnv {
    let env = start_without_pods(crate::running_vector::KINDS).await;
    env.apply(&object("Vector", "logs", &json!({"agent": {}})));
    env.apply(&object("VectorPipeline", "first", &logs("out")));
    publishes(&env, "first").await;
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    env
}

/// Waits until the configuration contains a pipeline.
async fn publishes(env: &TestEnv, pipeline: &str) {
    let sink = format!("default__{pipeline}__out");
    env.configuration_that(pipeline, AGENT, |config: &Value| {
        config["sinks"][&sink].is_object()
    })
    .await;
}
