//! The event collector sends Events of a real API server to sources of Vector.

mod source;

use std::fs;
use std::path::Path;
use std::process::Command;

use lockstep_envtest::{Process, eventually, free_port};
use serde_json::{Value, json};
use tonic::Code;

use crate::env::TestEnv;
use crate::event_collector::source::VectorSource;
use crate::running_vector::{KINDS, object, start_without_pods};

const NAME: &str = "central-event-collector";

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_namespace_arrive_at_each_source_that_answers() {
    let env = start_without_pods(KINDS).await;
    let configuration = configuration_of_a_pipeline(&env).await;
    let [receiver] = configuration["Receivers"]
        .as_array()
        .expect("a list")
        .as_slice()
    else {
        panic!("{configuration}");
    };
    assert_eq!(receiver["WatchedNamespace"], "default");
    // A time that no other program can read is one of its Event alone.
    emit_with(&env, "default", "a.0", "far away", "9999-12-31T23:59:59Z");
    let first = VectorSource::start().await;
    let collector = Collector::new(&env).await;
    // Nothing listens on the port of another pipeline.
    collector.write(&[receiver_at(free_port()), receiver_at(first.port)]);
    let process = collector.start().await;
    collector.is_watching(&env, 2).await;

    emit(&env, "default", "a.1", "no space left");
    emit(&env, "kube-system", "b.1", "of somebody else");
    let arrived = first.has("no space left").await;
    let event = &arrived["event"];
    assert_eq!(event["reason"], "Evicted", "{event}");
    assert_eq!(event["namespace"], "default");
    assert_eq!(event["involvedObject"]["kind"], "Pod");
    let is_foreign = |events: &[Value]| {
        events
            .iter()
            .any(|it| it["event"]["namespace"] != "default")
    };
    assert!(!is_foreign(&first.events()), "{:?}", first.events());

    // Vector is not ready for a while.
    first.answer_with(Code::Unavailable);
    emit(&env, "default", "a.2", "while Vector restarts");
    let is_asked = async || (first.refused() > 0).then_some(());
    eventually("a refused batch", is_asked)
        .await
        .expect("the source is asked");
    first.answer_with(Code::Ok);
    first.has("while Vector restarts").await;

    // A batch that Vector will never accept does not keep the next one back.
    first.answer_with(Code::DataLoss);
    emit(&env, "default", "a.3", "rejected");
    let is_counted = async || {
        let metrics = collector.metrics(&env).await;
        let mut lines = metrics.lines();
        lines
            .any(|line| {
                line.starts_with("event_collector_rejected_events_total{") && line.ends_with(" 1")
            })
            .then_some(())
    };
    eventually("the rejected Event", is_counted)
        .await
        .expect("it is counted");
    first.answer_with(Code::Ok);
    // The clock of the node is slow.
    let slow = jiff::Timestamp::now() - jiff::Span::new().minutes(10);
    emit_at(slow, &env, "default", "a.4", "after the rejected one");
    first.has("after the rejected one").await;

    // Another pipeline comes.
    let second = VectorSource::start().await;
    collector.write(&[receiver_at(first.port), receiver_at(second.port)]);
    let has_begun = async || {
        process
            .output()
            .contains("the configuration has changed")
            .then_some(())
    };
    eventually("the change", has_begun)
        .await
        .expect("it is read");
    collector.is_watching(&env, 2).await;
    emit(&env, "default", "a.5", "for both");
    first.has("for both").await;
    second.has("for both").await;
    assert!(
        !second
            .events()
            .iter()
            .any(|it| it["event"]["message"] == "no space left")
    );

    process.terminate().expect("the signal is sent");
    process.ended().await;
    let status = process.exit_status().expect("it has ended");
    assert!(status.success(), "{status}: {}", process.output());
}

/// Creates an aggregator with a pipeline, and returns the configuration of its collector.
async fn configuration_of_a_pipeline(env: &TestEnv) -> Value {
    env.apply(&object(
        "VectorAggregator",
        "central",
        &json!({"replicas": 0}),
    ));
    let spec = json!({
        "sources": {"in": {"type": "kubernetes_events"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    });
    env.apply(&object("VectorPipeline", "events", &spec));
    let written = eventually("the collector", async || {
        let is_deployed = env.get(&format!("deployment/{NAME}")).is_object();
        let map = env.get(&format!("configmap/{NAME}"));
        let text = map["data"]["config.json"]
            .as_str()
            .filter(|_| is_deployed)?;
        serde_json::from_str(text).ok()
    });
    written
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()))
}

/// Collector with the rights of its service account.
struct Collector {
    directory: tempfile::TempDir,
    kubeconfig: std::path::PathBuf,
    metrics_port: u16,
}

impl Collector {
    async fn new(env: &TestEnv) -> Self {
        let kubeconfig = env
            .cluster
            .service_account_kubeconfig("default", NAME, None);
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            kubeconfig: kubeconfig.await.expect("a kubeconfig"),
            metrics_port: free_port(),
        }
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("config.json")
    }

    fn write(&self, receivers: &[Value]) {
        let configuration = json!({"MaxBatchSize": 250, "Receivers": receivers});
        // A kubelet replaces the file as a whole, too.
        let new = self.directory.path().join("new.json");
        fs::write(&new, configuration.to_string()).expect("the file is written");
        fs::rename(new, self.file()).expect("the file is replaced");
    }

    async fn start(&self) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .args(["vector", "collect-events", "--config"])
            .arg(self.file())
            .arg(format!(
                "--metrics-bind-address=127.0.0.1:{}",
                self.metrics_port
            ))
            .env("KUBECONFIG", &self.kubeconfig);
        let logs: &Path = self.directory.path();
        let process = Process::start("collector", &mut command, logs).expect("the process starts");
        let is_serving = async || process.output().contains("collecting Events").then_some(());
        eventually("the collector", is_serving)
            .await
            .expect("it serves");
        process
    }

    async fn metrics(&self, env: &TestEnv) -> String {
        env.metrics(&format!("http://127.0.0.1:{}", self.metrics_port))
            .await
    }

    /// Waits until receivers have read the Events of before: the controller has recorded some.
    async fn is_watching(&self, env: &TestEnv, receivers: usize) {
        emit(env, "default", "before.1", "before");
        let have_read = async || {
            let metrics = self.metrics(env).await;
            let read = metrics.lines().filter(|line| {
                let is_count = line.starts_with("event_collector_skipped_events_total{")
                    || line.starts_with("event_collector_handled_events_total{");
                is_count && !line.ends_with(" 0")
            });
            let addresses: std::collections::BTreeSet<_> = read
                .filter_map(|line| line.split("service=\"").nth(1)?.split('"').next())
                .collect();
            (addresses.len() >= receivers).then_some(())
        };
        eventually("the first Events", have_read)
            .await
            .expect("they are read");
    }
}

fn receiver_at(port: u16) -> Value {
    json!({
        "ServiceName": "127.0.0.1", "ServiceNamespace": "", "Port": port.to_string(),
        "WatchedNamespace": "default",
    })
}

/// Records an Event, as the kubelet does.
fn emit(env: &TestEnv, namespace: &str, name: &str, message: &str) {
    emit_at(jiff::Timestamp::now(), env, namespace, name, message);
}

/// Emits an Event at the time of its writer's clock. As those of the kubelet, it has whole seconds.
fn emit_at(now: jiff::Timestamp, env: &TestEnv, namespace: &str, name: &str, message: &str) {
    let now = jiff::Timestamp::from_second(now.as_second()).expect("it was a time before");
    emit_with(env, namespace, name, message, &now.to_string());
}

fn emit_with(env: &TestEnv, namespace: &str, name: &str, message: &str, time: &str) {
    env.apply(&json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": namespace},
        "reason": "Evicted", "type": "Warning", "message": message,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "source": {"component": "kubelet", "host": "node"},
    }));
}
