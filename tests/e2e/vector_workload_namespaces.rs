//! Workloads that take pipelines or data of other namespaces run only in namespaces that an administrator has marked.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockstep_envtest::{Installation, eventually};
use serde_json::{Value, json};

use crate::audit::lockstep;
use crate::env::{TestEnv, allow_workloads};
use crate::running_vector::{KINDS, logs, object, start_without_nodes, start_without_pods};
use crate::webhook_only::audit;

/// Namespace of a tenant.
const TEAM: &str = "team";

/// Reason of the condition `Stalled`.
const NOT_MARKED: &str = "NamespaceNotMarked";

/// Types of the objects that a workload can own, except for cluster-scoped ones.
const OWNED: &str = "serviceaccounts,roles,rolebindings,configmaps,secrets,services,daemonsets,deployments,\
    statefulsets,networkpolicies,pods,poddisruptionbudgets,horizontalpodautoscalers";

/// Returns an object in the namespace of the tenant.
fn in_team(kind: &str, name: &str, spec: &Value) -> Value {
    let mut object = object(kind, name, spec);
    object["metadata"]["namespace"] = json!(TEAM);
    object
}

fn agents() -> Value {
    in_team("Vector", "mine", &json!({"agent": {}}))
}

impl TestEnv {
    /// Creates the namespace of the tenant, in which the controller may access Secrets.
    async fn create_team(&self) {
        self.kubectl(&["create", "namespace", TEAM])
            .unwrap_or_else(|error| self.fail(&error));
        let allowed = Installation::allow_secrets(&self.cluster, TEAM).await;
        allowed.expect("a RoleBinding");
    }

    fn remove_mark(&self, namespace: &str) {
        let mark = "lockstep.dev/vector-workloads-";
        self.kubectl(&["annotate", "namespace", namespace, mark])
            .unwrap_or_else(|error| self.fail(&error));
    }

    /// Waits until a workload is stalled because of its namespace.
    async fn waits_for_the_mark(&self, workload: &Value) -> Condition {
        let name = workload["metadata"]["name"].as_str().unwrap_or_default();
        let api = self.objects(workload);
        let stalled = self.condition_of(&api, name, "Stalled", "True").await;
        assert_eq!(stalled.reason, NOT_MARKED, "{}", stalled.message);
        stalled
    }

    /// Returns the names of the owned objects in the namespace of the tenant, and of the cluster-scoped ones of its workload
    /// `mine`.
    fn owned_in_team(&self) -> Vec<String> {
        let get = |arguments: &[&str]| {
            let found = self.kubectl(&[&["get", "--output=name"], arguments].concat());
            found.unwrap_or_else(|error| self.fail(&error))
        };
        let namespaced = get(&[OWNED, "--namespace", TEAM]);
        let cluster_scoped = get(&["clusterroles,clusterrolebindings"]);
        let cluster_scoped = cluster_scoped.lines().filter(|it| it.contains("mine-"));
        let of_cluster = ["serviceaccount/default", "configmap/kube-root-ca.crt"];
        let found = namespaced.lines().chain(cluster_scoped);
        let found =
            found.filter(|name| !of_cluster.contains(name) && !name.contains("lockstep-secret"));
        found.map(str::to_owned).collect()
    }

    /// Returns the configuration of the agents of the tenant, or null.
    fn configuration_in_team(&self, secret: &str, file: &str) -> Value {
        let secret = self.kubectl(&[
            "get",
            "secret",
            secret,
            "--namespace",
            TEAM,
            "--output=json",
        ]);
        let Ok(secret) = secret else {
            return Value::Null;
        };
        let secret: Value = serde_json::from_str(&secret).expect("JSON");
        let content = serde_json::from_value(secret["data"][file].clone());
        let content: k8s_openapi::ByteString = content.expect("Base64");
        serde_json::from_slice(&content.0).expect("JSON")
    }

    /// Waits until the configuration of the tenant's workload has a sink.
    async fn team_runs(&self, secret: &str, file: &str, sink: &str) {
        let running = eventually("the configuration", async || {
            let config = self.configuration_in_team(secret, file);
            config["sinks"][sink].is_object().then_some(())
        });
        running
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}\n{}", self.statuses())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_in_an_unmarked_namespace_get_nothing_until_an_administrator_marks_it() {
    let env = start_without_nodes(&[]).await;
    env.kubectl(&["create", "namespace", TEAM])
        .expect("a namespace");
    let mine = agents();
    env.apply(&mine);
    let check = json!({"agent": {"configCheck": {"mode": "Pod"}}});
    env.apply(&in_team("Vector", "checked", &check));
    env.apply(&object("Vector", "logs", &json!({"agent": {}})));
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    env.runs("app", Some(1), &[("Vector default/logs", Some(1))])
        .await;
    // The missing mark comes first, not the missing permission on Secrets.
    let stalled = env.waits_for_the_mark(&mine).await;
    let command = "`kubectl annotate namespace team lockstep.dev/vector-workloads=allowed`";
    assert!(stalled.message.contains(command), "{}", stalled.message);
    assert_eq!(env.owned_in_team(), [""; 0]);
    let allowed = Installation::allow_secrets(&env.cluster, TEAM).await;
    allowed.expect("a RoleBinding");
    env.apply(&object("VectorPipeline", "app", &logs("second")));
    env.runs("app", Some(2), &[("Vector default/logs", Some(2))])
        .await;
    // Also after a reconciliation that a user requests.
    let now = "lockstep.dev/reconcile-requested-at=now";
    env.kubectl(&["annotate", "vector/mine", "--namespace", TEAM, now])
        .expect("annotated");
    let handled = eventually("the requested reconciliation", async || {
        let found = env.kubectl(&["get", "vector/mine", "--namespace", TEAM, "--output=json"]);
        found
            .ok()?
            .contains("\"lastHandledReconcileAt\": \"now\"")
            .then_some(())
    });
    handled
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    assert_eq!(env.owned_in_team(), [""; 0]);
    let found = audit(&env.cluster)["findings"].clone();
    assert!(
        found[0]["message"]
            .as_str()
            .is_some_and(|it| it.contains("Vector team/mine")),
        "{found}"
    );
    let marked = found.to_string();
    assert!(marked.contains("in the namespace default"), "{marked}");

    allow_workloads(&env.cluster, TEAM);
    env.team_runs("mine-agent", "agent.json", "default__app__second")
        .await;
    assert!(
        env.owned_in_team()
            .contains(&"daemonset.apps/mine-agent".to_owned())
    );
    // No node runs the Pod that checks the pipeline.
    let of_team = [("Vector team/checked", None), ("Vector team/mine", Some(2))];
    let all = [&[("Vector default/logs", Some(2))][..], &of_team].concat();
    env.runs("app", Some(0), &all).await;
    let mut owned = env.owned_in_team().into_iter();
    assert!(owned.any(|name| name.starts_with("pod/configcheck-")));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_run_on_with_their_last_configuration_when_the_mark_is_removed() {
    let env = start_without_nodes(&[]).await;
    env.create_team().await;
    allow_workloads(&env.cluster, TEAM);
    env.apply(&agents());
    env.apply(&object("Vector", "logs", &json!({"agent": {}})));
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    let both = |generations: [Option<i64>; 2]| {
        let [logs, mine] = generations;
        [("Vector default/logs", logs), ("Vector team/mine", mine)]
    };
    env.runs("app", Some(1), &both([Some(1), Some(1)])).await;
    let before = env.owned_in_team();
    let config = env.configuration_in_team("mine-agent", "agent.json");

    env.remove_mark(TEAM);
    env.waits_for_the_mark(&agents()).await;
    // Neither a change, nor a new pipeline, nor a repair.
    let service_account = ["delete", "serviceaccount/mine-agent", "--namespace", TEAM];
    env.kubectl(&service_account).expect("deleted");
    env.apply(&object("VectorPipeline", "app", &logs("changed")));
    env.apply(&object("VectorPipeline", "new", &logs("out")));
    env.runs("app", Some(1), &both([Some(2), Some(1)])).await;
    env.runs("new", Some(0), &both([Some(1), None])).await;
    for pipeline in ["app", "new"] {
        let entry = &env.get(&format!("vectorpipeline/{pipeline}"))["status"]["workloads"][1];
        let message = entry["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("the namespace 'team' is not marked"),
            "{entry}"
        );
    }
    let left: Vec<_> = before
        .iter()
        .filter(|it| *it != "serviceaccount/mine-agent")
        .collect();
    assert_eq!(env.owned_in_team().iter().collect::<Vec<_>>(), left);
    assert_eq!(
        env.configuration_in_team("mine-agent", "agent.json"),
        config
    );

    // Its deletion removes everything, without the mark.
    env.kubectl(&[
        "delete",
        "vector/mine",
        "--namespace",
        TEAM,
        "--timeout=60s",
    ])
    .unwrap_or_else(|error| env.fail(&error));
    let gone = eventually("the deletion of the owned objects", async || {
        env.owned_in_team().is_empty().then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&format!("{error}: {:?}", env.owned_in_team())));
    env.runs("new", Some(1), &[("Vector default/logs", Some(1))])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_left_as_it_is_and_changes_are_reported_if_the_mark_is_missing_after_a_restart()
 {
    let mut env = start_without_nodes(&[]).await;
    env.create_team().await;
    allow_workloads(&env.cluster, TEAM);
    env.apply(&agents());
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    let mine = |generation| [("Vector team/mine", Some(generation))];
    env.runs("app", Some(1), &mine(1)).await;
    let before = env.owned_in_team();
    let config = env.configuration_in_team("mine-agent", "agent.json");
    env.installation.controller().kill();
    env.remove_mark(TEAM);
    env.apply(&object("VectorPipeline", "app", &logs("changed")));
    env.installation.start_controller().expect("a controller");
    let reported = eventually("the report to the pipeline", async || {
        let entry = &env.get("vectorpipeline/app")["status"]["workloads"][0];
        let message = entry["message"].as_str()?;
        message
            .contains("the namespace 'team' is not marked")
            .then(|| entry["generation"].clone())
    });
    let generation = reported.await;
    let generation =
        generation.unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    assert_eq!(generation, 1);
    assert_eq!(env.owned_in_team(), before);
    assert_eq!(
        env.configuration_in_team("mine-agent", "agent.json"),
        config
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregators_need_the_mark_for_pipelines_of_other_namespaces_and_for_a_cluster_role() {
    let env = start_without_pods(KINDS).await;
    env.installation
        .set_policy("settings: {vector: {preset: kaasops}}")
        .expect("a policy");
    env.create_team().await;
    let mut clustered = json!({"resourceNamespace": TEAM});
    clustered = object("ClusterVectorAggregator", "mine", &clustered);
    clustered["metadata"] = json!({"name": "mine"});
    env.apply(&clustered);
    let stalled = env.waits_for_the_mark(&clustered).await;
    assert!(
        stalled.message.contains("kubectl annotate namespace team "),
        "{}",
        stalled.message
    );
    assert_eq!(env.owned_in_team(), [""; 0]);
    env.kubectl(&["delete", "clustervectoraggregator/mine", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));

    // The pipelines of the own namespace need no mark, nor do its Events.
    let aggregator = in_team("VectorAggregator", "mine", &json!({}));
    env.apply(&aggregator);
    let source = json!({"type": "vector", "address": "0.0.0.0:6000"});
    let sinks = json!({"out": {"type": "blackhole", "inputs": ["*"]}});
    let sources = json!({"in": source, "events": {"type": "kubernetes_events"}});
    let mut spec = json!({"sources": sources, "sinks": sinks});
    spec["sinks"]["out"]["inputs"] = json!(["in", "events"]);
    env.apply(&in_team("VectorPipeline", "own", &spec));
    let config = ("mine-aggregator", "config.json");
    env.team_runs(config.0, config.1, "team__own__out").await;
    // The status is written after all owned objects.
    let complete = eventually("the status", async || {
        let args = ["get", "vectoraggregator/mine", "--namespace", TEAM];
        let found =
            env.kubectl(&[&args[..], &["--output=jsonpath={.status.runningPipelines}"]].concat());
        (found.ok()? == "1").then_some(())
    });
    complete
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let before = env.owned_in_team();
    assert!(
        before.iter().all(|it| !it.starts_with("clusterrole")),
        "{before:?}"
    );

    spec["sources"]["in"]["address"] = json!("0.0.0.0:6001");
    spec["sources"]["pods"] = json!({"type": "kubernetes_logs"});
    spec["sources"]
        .as_object_mut()
        .expect("sources")
        .remove("events");
    spec["sinks"]["out"]["inputs"] = json!(["in", "pods"]);
    let mixed = in_team("VectorPipeline", "mixed", &spec);
    let admitted = eventually("the policy", async || env.kubectl_apply(&mixed).ok());
    admitted
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.waits_for_the_mark(&aggregator).await;
    assert_eq!(env.owned_in_team(), before);
    let published = env.configuration_in_team(config.0, config.1);
    assert_eq!(published["sources"]["team__mixed__pods"], Value::Null);
    allow_workloads(&env.cluster, TEAM);
    env.team_runs(config.0, config.1, "team__mixed__out").await;
    let roles = env.owned_in_team();
    assert!(
        roles.iter().any(|it| it.starts_with("clusterrole.")),
        "{roles:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_a_list_of_namespaces_reads_no_annotations() {
    let env = start_without_nodes(&["--vector-workload-namespaces=team,other"]).await;
    env.create_team().await;
    env.apply(&agents());
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    env.team_runs("mine-agent", "agent.json", "default__app__out")
        .await;
    // The Namespace `default` is annotated, and not listed.
    let logs = object("Vector", "logs", &json!({"agent": {}}));
    env.apply(&logs);
    let stalled = env.waits_for_the_mark(&logs).await;
    let argument = "the argument --vector-workload-namespaces of the controller";
    assert!(stalled.message.contains(argument), "{}", stalled.message);
    assert_eq!(env.get("daemonset/logs-agent"), Value::Null);
    audit_agrees_with_the_list(&env);
    let metrics = env.metrics(&env.installation.controller_health_url()).await;
    let mut watches = metrics
        .lines()
        .filter(|line| line.starts_with("lockstep_watch_up"));
    let of_vectors =
        |line: &&str| line.contains("controller=\"vector") && line.contains("\"namespaces\"");
    assert_eq!(watches.find(of_vectors), None);
}

/// Asserts that `audit` with the same list as the controller finds what the controller does not run, and nothing else.
fn audit_agrees_with_the_list(env: &TestEnv) {
    let list = [
        "audit",
        "--output=json",
        "--vector-workload-namespaces=team,other",
    ];
    let output = lockstep(env, &list);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let messages = |is_error: bool| {
        let found = findings
            .iter()
            .filter(|finding| finding["isError"] == is_error);
        let messages = found.filter_map(|finding| finding["message"].as_str());
        messages.collect::<Vec<_>>()
    };
    let errors = messages(true);
    let expected = "Vector default/logs will not be run or changed before an administrator adds the namespace default to the \
        argument --vector-workload-namespaces of the controller.";
    assert!(
        errors.len() == 1 && errors[0].starts_with(expected),
        "{errors:?}"
    );
    assert_eq!(messages(false).len(), 2, "{report}");
    assert_eq!(output.status.code(), Some(1));
    let in_team = lockstep(env, &[&list[..], &["--namespace", TEAM]].concat());
    assert_eq!(in_team.status.code(), Some(0), "{in_team:?}");
    let of_annotations = lockstep(env, &["audit", "--namespace", TEAM]);
    assert_eq!(of_annotations.status.code(), Some(1), "{of_annotations:?}");
}
