//! Configurations are checked in Pods before they are published. There is no kubelet: the test sets the statuses of the
//! Pods.

use k8s_openapi::ByteString;
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::running_vector::{AGENT, object, start_without_nodes};

/// Selector of the Pods, and of what else belongs to a check.
const SELECTOR: &str = "--selector=app.kubernetes.io/component=ConfigCheck";

fn logs(sink: &str) -> Value {
    json!({
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {sink: {"type": "console", "inputs": ["in"], "encoding": {"codec": "json"}}},
    })
}

fn agents(mode: &str) -> Value {
    let check = json!({"mode": mode, "image": "registry.example/vector:9"});
    object("Vector", "logs", &json!({"agent": {"configCheck": check}}))
}

impl TestEnv {
    /// Returns the Pods that check configurations and have not ended.
    fn check_pods(&self) -> Vec<Value> {
        let found = self.kubectl(&["get", "pods", SELECTOR, "--output=json"]);
        let found: Value = serde_json::from_str(&found.expect("a list")).expect("JSON");
        let pods = found["items"].as_array().cloned().unwrap_or_default();
        let runs = |pod: &Value| pod["status"]["phase"] == "Pending";
        pods.into_iter().filter(runs).collect()
    }

    /// Waits for the only Pod that checks a configuration. Returns its name.
    pub async fn check_pod(&self, what: &str) -> String {
        let found = eventually(what, async || {
            let pods = self.check_pods();
            let [pod] = &pods[..] else { return None };
            pod["metadata"]["name"].as_str().map(str::to_owned)
        });
        let failed = |error: String| self.fail(&format!("{error}\n{}", self.statuses()));
        found
            .await
            .unwrap_or_else(|error| failed(error.to_string()))
    }

    /// Ends a Pod as a kubelet does.
    pub fn end_pod(&self, name: &str, exit_code: i64, log: &str) {
        let (phase, reason) = match exit_code {
            0 => ("Succeeded", "Completed"),
            _ => ("Failed", "Error"),
        };
        let ended = json!({"exitCode": exit_code, "reason": reason, "message": log});
        let container = json!({
            "name": "config-check", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": ended},
        });
        let status = json!({"phase": phase, "containerStatuses": [container]});
        self.patch_pod_status(&format!("pod/{name}"), &status);
    }

    /// Changes the status of a Pod as a kubelet does.
    pub fn patch_pod_status(&self, pod: &str, status: &Value) {
        let patch = json!({"status": status}).to_string();
        let arguments = [
            "patch",
            pod,
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch,
        ];
        self.kubectl(&arguments)
            .unwrap_or_else(|error| self.fail(&error));
    }

    /// Waits until the status of a pipeline has these generation and message in its first workload.
    pub async fn reports(&self, pipeline: &str, generation: Option<i64>, message: Option<&str>) {
        let mut last = Value::Null;
        let reported = eventually("the report in the status", async || {
            last = self.get(&format!("vectorpipeline/{pipeline}"))["status"].clone();
            let entry = &last["workloads"][0];
            let found = entry["message"].as_str();
            let is_message = match message {
                Some(part) => found.is_some_and(|it| it.contains(part)),
                None => found.is_none(),
            };
            (entry["generation"].as_i64() == generation && is_message).then_some(())
        });
        reported
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}: {last:#}")));
    }

    /// Waits until the status of the agents plans a change, with its action and one of its reasons, or none.
    async fn plans(&self, expected: Option<(&str, &str)>) {
        let mut last = Value::Null;
        let planned = eventually("the planned change", async || {
            last = self.get("vector/logs")["status"]["plannedChange"].clone();
            let found = last["action"].as_str();
            let reasons = last["reasons"].as_array();
            let is_so = match expected {
                None => last.is_null(),
                Some((action, reason)) => {
                    let mut reasons = reasons.into_iter().flatten();
                    found == Some(action) && reasons.any(|it| it == reason)
                }
            };
            is_so.then_some(())
        });
        planned
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}: {expected:?}: {last:#}")));
    }

    /// Returns the stored results of the checks of the agents.
    fn stored_results(&self) -> Vec<Value> {
        let secret = self.get("secret/logs-agent-parts");
        let stored: ByteString =
            serde_json::from_value(secret["data"]["checks.json"].clone()).expect("Base64");
        serde_json::from_slice(&stored.0).expect("results")
    }

    /// Waits until nothing of a check exists, apart from service accounts.
    pub async fn no_checks(&self) {
        let gone = eventually("the deletion of Pods and Secrets", async || {
            let left = self.kubectl(&["get", "pods,secrets", SELECTOR, "--output=name"]);
            left.ok()?.trim().is_empty().then_some(())
        });
        let failed = |error: String| self.fail(&format!("{error}\n{}", self.statuses()));
        gone.await.unwrap_or_else(|error| failed(error.to_string()));
    }

    pub async fn runs_sink(&self, sink: &str) -> Value {
        self.configuration_that(sink, AGENT, |config| config["sinks"][sink].is_object())
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_is_published_once_a_pod_has_accepted_it() {
    let mut env = start_without_nodes(&[]).await;
    env.apply(&agents("Pod"));
    env.apply(&object("VectorPipeline", "app", &logs("first")));
    let pod = env.check_pod("the check of the new pipeline").await;
    let checked = env.configuration(&pod, AGENT.1);
    assert!(checked["sinks"]["default__app__first"].is_object());
    let spec = env.get(&format!("pod/{pod}"))["spec"].clone();
    assert_eq!(spec["containers"][0]["image"], "registry.example/vector:9");
    let waits = format!("is being checked by the Pod `{pod}`");
    env.reports("app", None, Some(&waits)).await;
    env.plans(Some(("Reload", "pipeline default/app added")))
        .await;
    // A check does not concern the Pods that run Vector.
    let workloads = env.objects(&agents("Pod"));
    env.condition_of(&workloads, "logs", "Ready", "True").await;
    let published = env.configuration(AGENT.0, AGENT.1);
    assert!(published["sinks"]["defaultSink"].is_object());
    env.end_pod(&pod, 0, "");
    let first = env.runs_sink("default__app__first").await;
    env.reports("app", Some(1), None).await;
    env.plans(None).await;
    let made = env.get("vector/logs")["status"]["lastChange"].clone();
    assert_eq!(made["reasons"][0], "pipeline default/app added", "{made}");
    env.no_checks().await;
    // The configuration of all pipelines was that of this one: it is not checked twice.
    assert_eq!(env.get("vector/logs")["status"]["checkPods"], Value::Null);

    env.apply(&object("VectorPipeline", "app", &logs("second")));
    let pod = env.check_pod("the check of the change").await;
    env.plans(Some(("Reload", "pipeline default/app changed")))
        .await;
    let log = "Component errors\nx Sink \"default__app__second\": no such file";
    env.end_pod(&pod, 78, log);
    let message = "Vector rejects the configuration: Component errors\nx Sink \"second\"";
    env.reports("app", Some(1), Some(message)).await;
    // What Vector rejects is not planned.
    env.plans(None).await;
    env.no_checks().await;
    assert_eq!(env.configuration(AGENT.0, AGENT.1), first);
    let status = &env.get("vector/logs")["status"];
    let not_running = status["notRunning"][0].as_str().unwrap_or_default();
    assert!(
        not_running.starts_with("default/app: Vector rejects"),
        "{status}"
    );

    // The result is known after a restart: the only Pod is the one for another pipeline.
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.apply(&object("VectorPipeline", "other", &logs("out")));
    let pod = env.check_pod("the check of another pipeline").await;
    assert!(env.configuration(&pod, AGENT.1)["sinks"]["default__other__out"].is_object());
    env.reports("app", Some(1), Some(message)).await;
    env.end_pod(&pod, 0, "");
    let whole = eventually("the check of all pipelines", async || {
        let pods = env.check_pods();
        let [pod] = &pods[..] else { return None };
        let name = pod["metadata"]["name"].as_str()?.to_owned();
        let sinks = env.configuration(&name, AGENT.1)["sinks"].clone();
        let is_whole = sinks["default__app__first"].is_object();
        (is_whole && sinks["default__other__out"].is_object()).then_some(name)
    });
    let whole = whole
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    env.end_pod(&whole, 0, "");
    env.runs_sink("default__other__out").await;

    a_demanded_check_is_made(&env).await;
    a_secret_value_is_checked_and_not_shown(&env).await;
}

/// Vector rejects a pipeline because of the value of a Secret, which it prints.
async fn a_secret_value_is_checked_and_not_shown(env: &TestEnv) {
    env.no_checks().await;
    env.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "api-keys"},
        "stringData": {"key": "hunter22"}}),
    );
    let mut keyed = logs("out");
    keyed["secret"] = json!({"api": {"type": "kubernetes_secret", "name": "api-keys"}});
    keyed["sinks"]["out"] = json!({
        "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[api.key]",
    });
    env.apply(&object("VectorPipeline", "keyed", &keyed));
    let pod = env
        .check_pod("the check of the pipeline with a Secret")
        .await;
    // The Pods get a volume with the values.
    env.plans(Some(("Roll", "volumes[secret-assets]"))).await;
    let checked = env.configuration(&pod, AGENT.1);
    assert_eq!(
        checked["sinks"]["default__keyed__out"]["default_api_key"],
        "hunter22"
    );
    env.end_pod(&pod, 78, "x the key hunter22 is too short");
    let message = "Vector rejects the configuration: x the key *** is too short";
    env.reports("keyed", None, Some(message)).await;
    let statuses = env.statuses();
    assert!(!statuses.contains("hunter22"), "{statuses}");
}

/// Demands another check of a pipeline that was rejected. This time, it is accepted.
async fn a_demanded_check_is_made(env: &TestEnv) {
    env.no_checks().await;
    let demand = "vector-operator.kaasops.io/force-configcheck=1";
    env.kubectl(&["annotate", "vectorpipeline/app", demand])
        .expect("annotated");
    let pod = env.check_pod("the check that was demanded").await;
    env.end_pod(&pod, 0, "");
    let whole = eventually("the check of all pipelines", async || {
        let pods = env.check_pods();
        let names = pods
            .iter()
            .filter_map(|pod| pod["metadata"]["name"].as_str());
        names.map(str::to_owned).find(|name| *name != pod)
    });
    let whole = whole
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    env.end_pod(&whole, 0, "");
    env.runs_sink("default__app__second").await;
    env.reports("app", Some(2), None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_without_a_result_publishes_nothing_until_the_mode_is_changed() {
    let mut env = start_without_nodes(&["--vector-check-timeout=1s"]).await;
    env.apply(&agents("Both"));
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    let message = "could not be checked, and is checked again: its Pod has not ended within 1 s";
    env.reports("app", None, Some(message)).await;
    env.no_checks().await;
    let published = env.configuration(AGENT.0, AGENT.1);
    assert!(published["sinks"]["defaultSink"].is_object());
    // The result and the time of the next attempt are known after a restart.
    let first = env.stored_results().remove(0);
    assert!(
        first["attempts"] == 1 && first["retryAt"].is_string(),
        "{first}"
    );
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.apply(&object("VectorPipeline", "other", &logs("out")));
    env.reports("other", None, Some(message)).await;
    env.reports("app", None, Some(message)).await;
    let both = env.stored_results();
    assert_eq!((both.len(), &both[0]), (2, &first), "{both:?}");

    env.apply(&agents("InProcess"));
    env.runs_sink("default__app__out").await;
    env.runs_sink("default__other__out").await;
    env.no_checks().await;
    let accounts = eventually("the deletion of the service account", async || {
        env.get("serviceaccount/logs-agent-configcheck")
            .is_null()
            .then_some(())
    });
    accounts
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    a_pod_that_the_namespace_forbids_is_reported(&env).await;
}

/// Pod Security forbids the volumes of the Pods. What needs no check is published all the same.
async fn a_pod_that_the_namespace_forbids_is_reported(env: &TestEnv) {
    let baseline = "pod-security.kubernetes.io/enforce=baseline";
    env.kubectl(&["label", "namespace/default", baseline])
        .expect("labelled");
    let workload = agents("Pod");
    env.apply(&workload);
    env.apply(&object("VectorPipeline", "app", &logs("changed")));
    env.reports("app", Some(1), Some("waits for a check in a Pod"))
        .await;
    let ready = env
        .condition_of(&env.objects(&workload), "logs", "Ready", "False")
        .await;
    assert!(ready.message.contains("hostPath"), "{ready:?}");
    env.kubectl(&["delete", "vectorpipeline/other"])
        .expect("deleted");
    let published = env
        .configuration_that("the deletion", AGENT, |config| {
            config["sinks"]["default__other__out"].is_null()
        })
        .await;
    assert!(published["sinks"]["default__app__out"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_of_all_workloads_wait_for_one_slot_and_end_with_their_workload() {
    let env = start_without_nodes(&["--vector-max-check-pods=1"]).await;
    env.apply(&agents("Pod"));
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    let first = env.check_pod("the check of the agents").await;
    let spec = json!({"replicas": 1, "configCheck": {"mode": "Pod"}});
    env.apply(&object("VectorAggregator", "central", &spec));
    let net = json!({
        "sources": {"in": {"type": "vector", "address": "0.0.0.0:6000"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    });
    env.apply(&object("VectorPipeline", "net", &net));
    env.reports("net", None, Some("waits for a check in a Pod"))
        .await;
    assert_eq!(env.check_pod("only one Pod").await, first);

    env.kubectl(&["delete", "vector/logs", "--wait=false"])
        .expect("deleted");
    let second = eventually("the check of the aggregator", async || {
        let pods = env.check_pods();
        let names = pods
            .iter()
            .filter_map(|pod| pod["metadata"]["name"].as_str());
        names.map(str::to_owned).find(|name| *name != first)
    });
    let second = second
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    assert!(
        second.starts_with("configcheck-central-aggregator-"),
        "{second}"
    );
    let gone = eventually("the deletion of the first check", async || {
        let objects = ["pod", "secret"].map(|kind| env.get(&format!("{kind}/{first}")));
        objects.iter().all(Value::is_null).then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    // The mode is changed while the Pod runs.
    let spec = json!({"replicas": 1});
    env.apply(&object("VectorAggregator", "central", &spec));
    env.configuration_that(
        "the pipeline",
        ("central-aggregator", "config.json"),
        |config| config["sinks"]["default__net__out"].is_object(),
    )
    .await;
    env.no_checks().await;
}
