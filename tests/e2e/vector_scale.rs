//! Measurement: many pipelines and workloads. It takes minutes, and prints figures:
//!
//! ```text
//! cargo test --release -p lockstep --test e2e -- --ignored --nocapture vector_scale
//! ```

use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::{Client, ResourceExt};
use lockstep_envtest::{Installation, eventually_within};
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads, resource_of};
use crate::running_vector::start_without_pods;
use crate::usage::Usage;

const KINDS: &str = "Vector,VectorPipeline";

/// Time limit of each step.
const DEADLINE: Duration = Duration::from_mins(15);

/// Namespaces with pipelines for each workload. Each namespace has ten pipelines.
const NAMESPACES: usize = 10;
const PIPELINES: usize = 10;

fn object(kind: &str, namespace: &str, name: &str, labels: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    })
}

/// Returns a pipeline of typical size: a source, a program and a sink.
fn pipeline(namespace: &str, name: &str, workload: usize, field: &str) -> Value {
    let spec = json!({
        "sources": {"logs": {"type": "kubernetes_logs"}},
        "transforms": {"parse": {
            "type": "remap", "inputs": ["logs"],
            "source": format!(".team = \"{namespace}\"\n.{field} = parse_json(.message) ?? {{}}\ndel(.file)"),
        }},
        "sinks": {"out": {
            "type": "http", "inputs": ["parse"], "uri": "http://logs.example.com", "encoding": {"codec": "json"},
        }},
    });
    let labels = json!({"workload": format!("w{workload}")});
    object("VectorPipeline", namespace, name, &labels, &spec)
}

/// Installation under measurement.
struct Scale {
    env: TestEnv,
    client: Client,
}

impl Scale {
    fn pipelines(&self) -> Api<DynamicObject> {
        let like = pipeline("n", "p", 0, "f");
        Api::all_with(self.client.clone(), &resource_of(&like))
    }

    async fn create(&self, object: &Value) {
        let api = self.env.objects(object);
        let object = serde_json::from_value(object.clone()).expect("an object");
        let created = api.create(&PostParams::default(), &object).await;
        created.expect("the webhook admits it");
    }

    /// Waits until each pipeline runs in its present generation.
    async fn all_run(&self) {
        let all = eventually_within(DEADLINE, "all pipelines to run", async || {
            let all = self.pipelines().list(&ListParams::default()).await.ok()?;
            let mut pipelines = all.items.iter();
            let are_running = pipelines.all(|pipeline| {
                let running = pipeline.data["status"]["runningGeneration"].as_i64();
                running.is_some() && running == pipeline.metadata.generation
            });
            are_running.then_some(())
        });
        all.await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
    }

    /// Returns the number of writes that the API server has served, without those of leases and events.
    async fn writes(&self) -> u64 {
        let request = http::Request::get("/metrics")
            .body(Vec::new())
            .expect("a request");
        let metrics = self.client.request_text(request).await.expect("metrics");
        let is_write = |line: &str| {
            let verbs = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
            verbs
                .iter()
                .any(|verb| line.contains(&format!("verb=\"{verb}\"")))
        };
        let is_ours = |line: &str| {
            let types = [
                "vectorpipelines",
                "vectors",
                "secrets",
                "daemonsets",
                "serviceaccounts",
            ];
            types
                .iter()
                .any(|plural| line.contains(&format!("resource=\"{plural}\"")))
        };
        let lines = metrics.lines().filter(|line| {
            line.starts_with("apiserver_request_total{") && is_write(line) && is_ours(line)
        });
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }

    fn usage(&mut self) -> Usage {
        Usage::of(self.env.installation.controller().id())
    }
}

/// Measures with a number of workloads, each with a hundred pipelines in ten namespaces of its own.
async fn measure(workloads: usize) {
    let env = start_without_pods(KINDS).await;
    let client = env.cluster.client();
    let mut scale = Scale { env, client };
    let count = workloads * NAMESPACES * PIPELINES;
    let started = Instant::now();
    for workload in 0..workloads {
        for namespace in 0..NAMESPACES {
            let namespace = format!("team-{workload}-{namespace}");
            scale
                .env
                .kubectl(&["create", "namespace", &namespace])
                .expect("a namespace");
            for index in 0..PIPELINES {
                let name = format!("pipeline-{index}");
                scale
                    .create(&pipeline(&namespace, &name, workload, "parsed"))
                    .await;
            }
        }
    }
    println!(
        "{count} pipelines created in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    let started = Instant::now();
    for workload in 0..workloads {
        let home = format!("team-{workload}-0");
        let allowed = Installation::allow_secrets(&scale.env.cluster, &home).await;
        allowed.expect("a RoleBinding");
        allow_workloads(&scale.env.cluster, &home);
        let selector = json!({"matchLabels": {"workload": format!("w{workload}")}});
        let spec = json!({"agent": {}, "selector": selector});
        let name = format!("agents-{workload}");
        scale
            .create(&object("Vector", &home, &name, &json!({}), &spec))
            .await;
    }
    scale.all_run().await;
    let Usage { cpu, memory } = scale.usage();
    println!(
        "{count} pipelines in {workloads} workloads run after {:.1} s; controller: {cpu:.1} s of CPU, {memory} MiB",
        started.elapsed().as_secs_f64()
    );

    let before = scale.writes().await;
    let started = Instant::now();
    let changed = pipeline("team-0-0", "pipeline-0", 0, "changed");
    scale.env.kubectl_apply(&changed).expect("applied");
    scale.all_run().await;
    let elapsed = started.elapsed().as_secs_f64();
    let after = scale.usage();
    let writes = scale.writes().await - before;
    println!(
        "one changed pipeline runs after {elapsed:.1} s: {writes} writes, controller: {:.2} s of CPU",
        after.cpu - cpu
    );
    assert!(writes <= 20, "{writes} writes for one changed pipeline");

    let before = scale.writes().await;
    let restarted = scale.env.installation.restart_controller_with(&[]);
    restarted.expect("restarted");
    // The changed pipeline shows that the new controller works.
    let changed = pipeline("team-0-0", "pipeline-0", 0, "again");
    let started = Instant::now();
    scale.env.kubectl_apply(&changed).expect("applied");
    scale.all_run().await;
    let Usage { cpu, memory } = scale.usage();
    let writes = scale.writes().await - before;
    println!(
        "after a restart, a changed pipeline runs after {:.1} s: {writes} writes; controller: {cpu:.1} s of CPU, {memory} MiB",
        started.elapsed().as_secs_f64()
    );
    assert!(writes <= 30, "{writes} writes after a restart");
    let all = scale
        .pipelines()
        .list(&ListParams::default())
        .await
        .expect("all");
    assert_eq!(all.items.iter().map(ResourceExt::name_any).count(), count);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement that takes minutes"]
async fn pipelines_by_the_hundreds() {
    for workloads in [5, 20] {
        Box::pin(measure(workloads)).await;
    }
}

/// Number of large pipelines, and the bytes of each.
const LARGE: usize = 70;
const BYTES: usize = 980_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement that takes minutes"]
async fn large_pipelines() {
    let env = start_without_pods(KINDS).await;
    let client = env.cluster.client();
    let mut scale = Scale { env, client };
    for namespace in ["infra", "large", "small"] {
        let created = scale.env.kubectl(&["create", "namespace", namespace]);
        created.expect("a namespace");
    }
    let allowed = Installation::allow_secrets(&scale.env.cluster, "infra").await;
    allowed.expect("a RoleBinding");
    allow_workloads(&scale.env.cluster, "infra");
    let agents = object(
        "Vector",
        "infra",
        "agents",
        &json!({}),
        &json!({"agent": {}}),
    );
    scale.create(&agents).await;
    let idle = scale.usage().memory;
    for index in 0..LARGE {
        let spec = json!({
            "sources": {"in": {
                "type": "kubernetes_logs", "exclude_paths_glob_patterns": ["x".repeat(BYTES)],
            }},
            "sinks": {"out": {
                "type": "console", "inputs": ["in"], "encoding": {"codec": "json"},
            }},
        });
        let name = format!("large-{index}");
        let large = object("VectorPipeline", "large", &name, &json!({}), &spec);
        scale.create(&large).await;
    }
    let started = Instant::now();
    scale.create(&pipeline("small", "small", 0, "parsed")).await;
    let runs = eventually_within(DEADLINE, "the small pipeline", async || {
        let all = scale.pipelines().list(&ListParams::default()).await.ok()?;
        let mut small = all.items.iter();
        let small = small.find(|pipeline| pipeline.name_any() == "small")?;
        let runs = small.data["status"]["runningGeneration"].as_i64() == Some(1);
        runs.then_some(())
    });
    runs.await.expect("it is published");
    let elapsed = started.elapsed().as_secs_f64();
    let peak = std::fs::read_to_string(format!(
        "/proc/{}/status",
        scale.env.installation.controller().id()
    ));
    let peak = peak.unwrap_or_default();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM"));
    println!(
        "beside {LARGE} pipelines of {BYTES} bytes, another one is published after {elapsed:.1} s; controller: {idle} MiB before, {} MiB now, {}",
        scale.usage().memory,
        peak.unwrap_or_default()
    );
}
