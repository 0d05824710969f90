//! The examples of pipelines and workloads run.

use lockstep_envtest::eventually;
use serde_json::Value;

use crate::env::root;
use crate::running_vector::{KINDS, start_without_pods};
use crate::vector_fields;

/// Pipelines and the workloads that run them.
const PIPELINES: [(&str, &[&str]); 7] = [
    ("vectorpipeline/app", &["Vector default/logs"]),
    (
        "vectorpipeline/to-datadog",
        &["Vector default/logs", "Vector default/payments"],
    ),
    ("clustervectorpipeline/journals", &["Vector default/logs"]),
    (
        "vectorpipeline/from-agents",
        &["VectorAggregator default/central"],
    ),
    (
        "vectorpipeline/syslog",
        &["VectorAggregator default/central"],
    ),
    (
        "vectorpipeline/events",
        &["VectorAggregator default/central"],
    ),
    (
        "clustervectorpipeline/applications",
        &["ClusterVectorAggregator durable"],
    ),
];

/// Objects that the examples say are created.
const OBJECTS: [&str; 13] = [
    "daemonset/logs-agent",
    "daemonset/payments-agent",
    "daemonset/merged-agent",
    "daemonset/moved-agent",
    "service/logs-agent",
    "deployment/central-aggregator",
    "horizontalpodautoscaler/central-aggregator",
    "poddisruptionbudget/central-aggregator",
    "service/central-aggregator-from-agents",
    "service/syslog",
    "deployment/central-event-collector",
    "statefulset/durable-aggregator",
    "service/durable-aggregator-headless",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_example_runs_and_each_field_has_its_effect() {
    let mut env = start_without_pods(KINDS).await;
    env.create_pod_monitor_crd();
    // No Pod runs here, so that each check takes a place for ever.
    let places = "--vector-max-check-pods=50";
    let restarted = env.installation.restart_controller_with(&[places]);
    restarted.expect("restarted");
    vector_fields::have_their_effects(&env).await;

    // The first example marks the namespace.
    let mark = "lockstep.dev/vector-workloads-";
    env.kubectl(&["annotate", "namespace/default", mark])
        .unwrap_or_else(|error| env.fail(&error));
    let examples = root().join("examples/vector");
    env.kubectl(&["apply", "--filename", &examples.to_string_lossy()])
        .unwrap_or_else(|error| env.fail(&error));
    for (pipeline, workloads) in PIPELINES {
        let mut last = Value::Null;
        let what = format!("{pipeline} to run");
        let running = eventually(&what, async || {
            let found = env.kubectl(&["get", pipeline, "--output=json"]).ok()?;
            let found: Value = serde_json::from_str(&found).ok()?;
            last = found["status"].clone();
            let entries = last["workloads"].as_array()?.iter();
            let names: Vec<_> = entries.filter_map(|it| it["workload"].as_str()).collect();
            (last["runningGeneration"] == 1 && names == workloads).then_some(())
        });
        running
            .await
            .unwrap_or_else(|error| env.fail(&format!("{error}: {last:#}\n{}", env.statuses())));
    }
    for object in OBJECTS {
        let created = eventually(object, async || env.kubectl(&["get", object]).ok());
        created
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
    }
}
