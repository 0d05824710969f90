//! Takeover of the workloads of another operator.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Stdio};

use k8s_openapi::ByteString;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads, root};
use crate::running_vector::{object, start};
use crate::webhook_only::audit;

/// Field manager of the operator of kaasops: the name of its program.
const OTHER: &str = "manager";

/// Label of the objects that the controller owns.
const OWNER_LABEL: &str = "lockstep.dev/owner-uid";

/// Type and name of a component.
type Component = (&'static str, &'static str);

/// Configurations, by Secret and key, with their components.
const RUNNING: [(&str, &str, &[Component]); 3] = [
    (
        "logs-agent",
        "agent.json",
        &[
            ("sources", "default-app-pods"),
            ("transforms", "default-app-tagged"),
            ("sinks", "default-app-out"),
        ],
    ),
    (
        "central-aggregator",
        "config.json",
        &[
            ("sources", "default-net-syslog_in"),
            ("sinks", "default-net-out"),
        ],
    ),
    (
        "stored-aggregator",
        "config.json",
        &[
            ("sources", "default-disk-vec"),
            ("sinks", "default-disk-out"),
            ("sources", "internalMetricsSource"),
            ("sinks", "internalMetricsSink"),
        ],
    ),
];

/// Objects as another operator has left them.
struct Left {
    /// Children as the API server stores them, with what `kubectl get` is to be given.
    children: BTreeMap<String, Value>,
    /// UIDs of all Pods.
    pods: Vec<String>,
}

impl TestEnv {
    /// Creates the objects that another operator has left, as that operator.
    async fn leave(&self) -> Left {
        let file = root().join("tests/e2e/kaasops/takeover.yaml");
        let text = std::fs::read_to_string(file).expect("the file");
        let objects: Value = serde_saphyr::from_str(&text).expect("YAML");
        let of = |part: &str| objects[part].as_array().cloned().expect("a list");
        let mut owners = BTreeMap::new();
        for object in of("workloads").iter().chain(&of("pipelines")) {
            let stored = self.create(object);
            let (name, uid) = (&stored["metadata"]["name"], &stored["metadata"]["uid"]);
            owners.insert(name.to_string(), uid.clone());
            if let Some(status) = object.get("status") {
                self.write_status(object, status).await;
            }
        }
        let mut children = BTreeMap::new();
        for mut child in of("children") {
            for metadata in ["/metadata", "/spec/template/metadata"] {
                let metadata = child.pointer_mut(metadata);
                let references = metadata.and_then(|it| it["ownerReferences"].as_array_mut());
                for reference in references.into_iter().flatten() {
                    reference["uid"] = owners[&reference["name"].to_string()].clone();
                }
            }
            let stored = self.create(&child);
            children.insert(what(&stored), stored);
        }
        // The StatefulSet has two Pods, too; they wait for their volumes.
        let pods = eventually("the Pods of all workloads", async || {
            let pods = self.pods();
            (pods.len() == 5).then_some(pods)
        });
        let pods = pods.await;
        Left {
            children,
            pods: pods.unwrap_or_else(|error| self.fail(&error.to_string())),
        }
    }

    /// Creates an object with the field manager of the other operator, and returns it as stored.
    fn create(&self, object: &Value) -> Value {
        let path = self.cluster.directory().join("created.json");
        std::fs::write(&path, object.to_string()).expect("a file");
        let manager = format!("--field-manager={OTHER}");
        let path = path.to_string_lossy();
        let arguments = [
            "create",
            "--output=json",
            "--show-managed-fields",
            &manager,
            "-f",
            &path,
        ];
        let stored = self.kubectl(&arguments);
        let stored = stored.unwrap_or_else(|error| self.fail(&error));
        serde_json::from_str(&stored).expect("JSON")
    }

    async fn write_status(&self, object: &Value, status: &Value) {
        let api: Api<DynamicObject> = self.objects(object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams {
            field_manager: Some(OTHER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({"status": status}));
        let written = api.patch_status(name, &params, &patch).await;
        written.expect("the status is written");
    }

    /// Starts the controller while the namespace is not marked, which the audit reports before, and marks it. Until then, what the
    /// other operator has created for the agents is as it was.
    async fn start_before_the_mark(&mut self, left: &Left) {
        let mark = "lockstep.dev/vector-workloads-";
        self.kubectl(&["annotate", "namespace/default", mark])
            .unwrap_or_else(|error| self.fail(&error));
        let unmarked = audit(&self.cluster)["findings"].to_string();
        assert!(unmarked.contains("namespace-not-marked"), "{unmarked}");
        assert!(unmarked.contains("Vector default/logs"), "{unmarked}");
        self.installation.start_controller().expect("started");
        let agents = self.objects(&object("Vector", "logs", &Value::Null));
        let stalled = self.condition_of(&agents, "logs", "Stalled", "True").await;
        assert_eq!(stalled.reason, "NamespaceNotMarked", "{}", stalled.message);
        let of_agents = |what: &str| what.contains("/logs-agent");
        for (what, before) in left.children.iter().filter(|(what, _)| of_agents(what)) {
            let child = self.get(what);
            let versions = [&child, before].map(|it| &it["metadata"]["resourceVersion"]);
            if !what.starts_with("daemonset") {
                assert_eq!(versions[0], versions[1], "{what}");
            }
            assert_eq!(
                child["metadata"]["labels"], before["metadata"]["labels"],
                "{what}"
            );
        }
        assert_eq!(self.get("secret/logs-agent-parts"), Value::Null);
        allow_workloads(&self.cluster, "default");
        let marked = audit(&self.cluster)["findings"].clone();
        assert_eq!(marked[0]["isError"], false, "{marked}");
    }

    /// Returns the UIDs of all Pods.
    fn pods(&self) -> Vec<String> {
        let uids = "--output=jsonpath={.items[*].metadata.uid}";
        let uids = self.kubectl(&["get", "pods", uids]).unwrap_or_default();
        let mut uids: Vec<_> = uids.split_whitespace().map(str::to_owned).collect();
        uids.sort();
        uids
    }

    /// Returns the names of the objects of an operator, of all types.
    fn labelled(&self) -> Vec<String> {
        let types = "serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,configmaps,secrets,services,\
            daemonsets,deployments,statefulsets,poddisruptionbudgets,horizontalpodautoscalers,podmonitors";
        let selector = "--selector=app.kubernetes.io/managed-by=vector-operator";
        let found = self.kubectl(&["get", types, selector, "--output=json"]);
        let found: Value =
            serde_json::from_str(&found.unwrap_or_else(|error| self.fail(&error))).expect("JSON");
        let mut names: Vec<_> = found["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(what)
            .collect();
        names.sort();
        names
    }

    /// Waits until the controller has written a child with this content, and returns the child.
    async fn owned(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let found = eventually(what, async || {
            let child = self.get(what);
            let is_ours = child["metadata"]["labels"][OWNER_LABEL].is_string()
                && child["metadata"]["annotations"]["lockstep.dev/last-applied-hash"].is_string();
            (is_ours && is_so(&child)).then_some(child)
        });
        let found = found.await;
        found.unwrap_or_else(|error| self.fail(&format!("{error}\n{}", self.statuses())))
    }

    /// Returns the field managers of an object, without those of its status.
    fn get_managers(&self, what: &str) -> Vec<String> {
        let object = self.kubectl(&["get", what, "--output=json", "--show-managed-fields"]);
        let object: Value =
            serde_json::from_str(&object.unwrap_or_else(|error| self.fail(&error))).expect("JSON");
        let entries = object["metadata"]["managedFields"].as_array().cloned();
        let entries = entries.into_iter().flatten();
        let entries = entries.filter(|entry| entry["subresource"].is_null());
        entries
            .filter_map(|entry| Some(entry["manager"].as_str()?.to_owned()))
            .collect()
    }

    /// Records each version of the configurations.
    fn record_configurations(&self) -> (Child, std::path::PathBuf) {
        let path = self.cluster.directory().join("configurations");
        let output = File::create(&path).expect("a file");
        let columns = "jsonpath={.metadata.name} {.data}{\"\\n\"}";
        let mut kubectl = self.cluster.kubectl();
        let watch = kubectl
            .args(["get", "secrets", "--watch", "--output", columns])
            .stdout(Stdio::from(output))
            .stderr(Stdio::null());
        (watch.spawn().expect("kubectl runs"), path)
    }
}

/// Returns what `kubectl get` is to be given.
fn what(object: &Value) -> String {
    let of = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    format!(
        "{}/{}",
        of(&object["kind"]),
        of(&object["metadata"]["name"])
    )
}

/// Returns true if a configuration has all components of its workload.
fn is_complete(config: &Value, components: &[(&str, &str)]) -> bool {
    components
        .iter()
        .all(|(block, name)| config[block][name].is_object())
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_of_another_operator_are_taken_over_without_a_restart() {
    let mut env = start().await;
    env.installation.controller().kill();
    env.create_pod_monitor_crd();
    let before = env.leave().await;
    let all_before = env.labelled();
    let (mut watch, versions) = env.record_configurations();
    env.start_before_the_mark(&before).await;

    // Only aggregators that read the Kubernetes API have permissions for it. Unused permissions stay as they are.
    let is_left = |what: &str| what.starts_with("clusterrole") && !what.ends_with("/logs-agent");
    for (what, left) in before.children.iter().filter(|(what, _)| !is_left(what)) {
        let child = env.owned(what, |_| true).await;
        assert_eq!(child["metadata"]["uid"], left["metadata"]["uid"], "{what}");
        let owners = &child["metadata"]["ownerReferences"];
        if what.starts_with("clusterrole") {
            // A reference from a cluster-scoped object to a namespaced one is invalid.
            assert_eq!(*owners, Value::Null, "{what}");
        } else {
            assert_eq!(*owners, left["metadata"]["ownerReferences"], "{what}");
        }
        // Nothing of the spec has changed: no Pod restarts, and no client connects to another address.
        assert_eq!(child["spec"], left["spec"], "{what}");
        if child["kind"] != "Deployment" {
            // That of a Deployment is increased by new annotations, too.
            let generation = &child["metadata"]["generation"];
            assert_eq!(*generation, left["metadata"]["generation"], "{what}");
        }
        let managers = env.get_managers(what);
        assert!(
            !managers.contains(&OTHER.to_owned()),
            "{what}: {managers:?}"
        );
    }
    for (secret, file, components) in RUNNING {
        let config = env
            .configuration_that("the pipelines", (secret, file), |it| {
                is_complete(it, components)
            })
            .await;
        let count = |block: &str| config[block].as_object().map_or(0, serde_json::Map::len);
        let all: usize = ["sources", "transforms", "sinks"].map(count).iter().sum();
        assert_eq!(all, components.len(), "{config}");
    }
    // Each workload has one more object, the one with checks in Pods has their service account, and no object exists twice.
    let all = env.labelled();
    let checks = "serviceaccount/logs-agent-configcheck";
    let (added, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it == checks);
    assert_eq!((&kept, added), (&all_before, vec![checks.to_owned()]));
    for parts in [
        "logs-agent-parts",
        "central-aggregator-parts",
        "stored-aggregator-parts",
    ] {
        env.owned(&format!("secret/{parts}"), |_| true).await;
    }
    assert_eq!(env.pods(), before.pods);
    // The Secret has no value that no pipeline refers to.
    let assets = env.get("secret/logs-agent-secret-assets");
    let value = json!({"default__app__api.key": ByteString(b"first".to_vec())});
    assert_eq!(assets["data"], value);

    // At no time was a pipeline missing.
    watch.kill().expect("killed");
    watch.wait().expect("ended");
    let versions = std::fs::read_to_string(versions).expect("the versions");
    let mut seen = 0;
    for (secret, file, components) in RUNNING {
        let of_secret = versions
            .lines()
            .filter_map(|line| line.strip_prefix(secret)?.strip_prefix(' '));
        for data in of_secret {
            let data: Value = serde_json::from_str(data).expect("JSON");
            let content: ByteString = serde_json::from_value(data[file].clone()).expect("Base64");
            let config = serde_json::from_slice(&content.0).expect("JSON");
            assert!(is_complete(&config, components), "{secret}: {config}");
            seen += 1;
        }
    }
    assert!(seen >= 2 * RUNNING.len(), "{versions}");

    // What the user removes is removed, although the other operator has set it; and changed options restart the Pods.
    let patch = r#"{"spec":{"agent":{"env":null,"labels":null,"expireMetricsSecs":60}}}"#;
    env.kubectl(&["patch", "vector/logs", "--type=merge", "--patch", patch])
        .unwrap_or_else(|error| env.fail(&error));
    let changed = env.owned("daemonset/logs-agent", |it| {
        it["spec"]["template"]["metadata"]["annotations"]["checksum/global-options"].is_string()
    });
    let changed = changed.await;
    let template = &changed["spec"]["template"];
    let variables = template["spec"]["containers"][0]["env"]
        .as_array()
        .expect("variables");
    assert!(
        variables.iter().all(|it| it["name"] != "REGION"),
        "{variables:?}"
    );
    assert_eq!(template["metadata"]["labels"]["stage"], Value::Null);
    assert_eq!(changed["metadata"]["labels"]["stage"], Value::Null);

    // The deletion does not wait for the finalizer of the other operator, and what it has created is deleted, too.
    env.kubectl(&["delete", "vectoraggregators", "--all", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    let gone = eventually(
        "the deletion of the objects of the aggregators",
        async || {
            let left = env.labelled();
            left.iter()
                .all(|what| what.contains("/logs-agent"))
                .then_some(())
        },
    );
    gone.await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{:?}", env.labelled())));
}
