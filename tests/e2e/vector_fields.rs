//! The fields of workloads have their effects in the objects that the API server stores.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use lockstep_envtest::{Installation, eventually};
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads, root};

/// Kinds of the objects that a workload owns, and their API groups and versions.
const OWNED: [(&str, &str, &str); 14] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("monitoring.coreos.com", "v1", "PodMonitor"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
];

/// Object of which the pipelines of the workload are a part, too. Of it, only the size of a batch is compared.
const COLLECTOR_CONFIGURATION: &str = "/data/config.json";

/// Workload with many fields, and their effects.
struct Workload {
    kind: String,
    name: String,
    /// Namespace of its objects.
    namespace: String,
    manifest: Value,
    effects: Vec<Value>,
}

impl Workload {
    /// Returns all workloads. The unit test that compares the table of fields with the CRDs writes the file.
    fn all() -> Vec<Self> {
        let file = root().join("tests/e2e/vector_fields.json");
        let text = std::fs::read_to_string(file).expect("the file");
        let workloads: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        workloads.iter().enumerate().map(Self::read).collect()
    }

    fn read((index, workload): (usize, &Value)) -> Self {
        let kind = workload["kind"].as_str().expect("a kind").to_owned();
        let is_cluster_scoped = kind.starts_with("Cluster");
        let mut namespace = format!("fields-{index}");
        // The names of a namespaced workload's objects are those of the table.
        let name = if is_cluster_scoped {
            format!("logs-{index}")
        } else {
            "logs".to_owned()
        };
        let mut spec = workload["spec"].clone();
        let mut metadata = json!({"name": name});
        if is_cluster_scoped {
            let set = spec["resourceNamespace"].as_str().map(str::to_owned);
            namespace = set.unwrap_or(namespace);
            spec["resourceNamespace"] = json!(namespace);
        } else {
            metadata["namespace"] = json!(namespace);
        }
        let effects = workload["effects"].to_string();
        let effects = effects
            .replace("NAMESPACE", &namespace)
            .replace("logs-aggregator", &format!("{name}-aggregator"));
        Self {
            manifest: json!({
                "apiVersion": "observability.kaasops.io/v1alpha1",
                "kind": kind,
                "metadata": metadata,
                "spec": spec,
            }),
            effects: serde_json::from_str(&effects).expect("JSON"),
            kind,
            name,
            namespace,
        }
    }

    /// Returns the pipelines that the effects need: for agents any one, for aggregators one with a Service, and one that
    /// receives Events.
    fn pipelines(&self) -> Vec<Value> {
        let (kind, namespace) = match self.kind.as_str() {
            "ClusterVectorAggregator" => ("ClusterVectorPipeline", None),
            _ => ("VectorPipeline", Some(&self.namespace)),
        };
        let of_agents = [("app", json!({"type": "kubernetes_logs"}))];
        let of_aggregators = [
            (
                "app",
                json!({"type": "socket", "mode": "tcp", "address": "0.0.0.0:9000"}),
            ),
            ("events", json!({"type": "kubernetes_events"})),
        ];
        let sources: &[_] = match self.kind.as_str() {
            "Vector" => &of_agents,
            _ => &of_aggregators,
        };
        let pipelines = sources.iter().map(|(name, source)| {
            json!({
                "apiVersion": "observability.kaasops.io/v1alpha1",
                "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "sources": {"in": source},
                    "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
                },
            })
        });
        pipelines.collect()
    }

    /// Returns the effects that objects do not have.
    fn missing(&self, stored: &Stored) -> Vec<String> {
        let effects = self.effects.iter();
        let missing = effects.filter(|effect| {
            let found = self.find(stored, effect);
            let pointer = text(effect, "pointer");
            let found = found.pointer(pointer).unwrap_or(&Value::Null);
            if pointer == COLLECTOR_CONFIGURATION {
                return batch_size(found) != batch_size(&effect["value"]);
            }
            !contains(&effect["value"], &without_defaults(effect, found))
        });
        let told = missing.map(|effect| {
            let found = self.find(stored, effect).pointer(text(effect, "pointer"));
            let found = found.unwrap_or(&Value::Null);
            format!(
                "{} of {}: {effect}, found {found}",
                self.kind, self.namespace
            )
        });
        told.collect()
    }

    /// Returns the object of an effect, or null.
    fn find<'a>(&self, stored: &'a Stored, effect: &Value) -> &'a Value {
        let object = match self.kind.as_str() {
            "Vector" => format!("{}-agent", self.name),
            _ => format!("{}-aggregator", self.name),
        };
        let kind = text(effect, "kind");
        let objects = stored.get(&(kind.to_owned(), self.namespace.clone()));
        let mut objects = objects.into_iter().flatten();
        let found = objects.find(|child| {
            let name = child["metadata"]["name"].as_str().unwrap_or_default();
            match text(effect, "suffix") {
                "" => name == object,
                "event-collector" => name == format!("{}-event-collector", self.name),
                // Its name ends with a hash.
                "configcheck" => name.starts_with("configcheck-"),
                "configcheck-account" => name == format!("{object}-configcheck"),
                suffix => name == format!("{object}-{suffix}"),
            }
        });
        found.unwrap_or(&Value::Null)
    }
}

/// Objects by kind and namespace.
type Stored = BTreeMap<(String, String), Vec<Value>>;

async fn stored(client: &Client) -> Stored {
    let mut stored = Stored::new();
    for (group, version, kind) in OWNED {
        let type_ = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &type_);
        for object in objects.list(&ListParams::default()).await.expect("objects") {
            let mut object = serde_json::to_value(object).expect("JSON");
            object["kind"] = json!(kind);
            let namespace = text(&object["metadata"], "namespace").to_owned();
            let key = (kind.to_owned(), namespace);
            stored.entry(key).or_default().push(object);
        }
    }
    stored
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// Returns a value without what the API server adds: tolerations of each Pod, and the default number of Pods.
fn without_defaults(effect: &Value, found: &Value) -> Value {
    let mut found = found.clone();
    let pointer = text(effect, "pointer");
    if pointer == "/spec/replicas" && found == 1 {
        return Value::Null;
    }
    if pointer == "/spec/tolerations" {
        let all = found.as_array_mut().into_iter();
        let is_added = |it: &Value| text(it, "key").starts_with("node.kubernetes.io/");
        all.for_each(|all| all.retain(|it| !is_added(it)));
    }
    found
}

/// Returns the size of a batch in the configuration of an event collector.
fn batch_size(configuration: &Value) -> Option<i64> {
    let configuration = serde_json::from_str::<Value>(configuration.as_str()?).ok()?;
    configuration["MaxBatchSize"].as_i64()
}

/// Returns true if a stored value is the expected one, or has it with defaults of the API server.
fn contains(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected.iter().all(|(name, value)| {
            let found = found.get(name).unwrap_or(&Value::Null);
            contains(value, found)
        }),
        (Value::Array(expected), Value::Array(found)) => {
            let mut pairs = expected.iter().zip(found);
            expected.len() == found.len()
                && pairs.all(|(expected, found)| contains(expected, found))
        }
        _ => expected == found,
    }
}

/// Creates workloads with all fields, waits for the effects, and deletes the workloads.
pub async fn have_their_effects(env: &TestEnv) {
    // One of the fields needs it.
    let policy = "settings: {vector: {envVarInterpolation: true}}";
    env.installation.set_policy(policy).expect("a policy");
    let workloads = Workload::all();
    let namespaces: BTreeSet<_> = workloads.iter().map(|it| it.namespace.as_str()).collect();
    for namespace in namespaces {
        env.kubectl(&["create", "namespace", namespace])
            .expect("a namespace");
        let allowed = Installation::allow_secrets(&env.cluster, namespace).await;
        allowed.expect("a RoleBinding");
        allow_workloads(&env.cluster, namespace);
    }
    let mut objects: Vec<_> = workloads.iter().flat_map(Workload::pipelines).collect();
    objects.extend(workloads.iter().map(|it| it.manifest.clone()));
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"name": "fields"}, "items": objects});
    // Rejected until the webhook has read the policy.
    let admitted = eventually("the workloads to be admitted", async || {
        env.kubectl_apply(&list).ok()
    });
    admitted
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));

    let client = env.cluster.client();
    let mut missing = Vec::new();
    let complete = eventually("the effects of all fields", async || {
        let stored = stored(&client).await;
        missing = workloads
            .iter()
            .flat_map(|it| it.missing(&stored))
            .collect();
        missing.is_empty().then_some(())
    });
    complete.await.unwrap_or_else(|error| {
        let missing = missing.join("\n");
        env.fail(&format!("{error}:\n{missing}\n{}", env.statuses()))
    });
    let of_namespaces = "vectors,vectoraggregators,vectorpipelines";
    let of_cluster = "clustervectoraggregators,clustervectorpipelines";
    for (kinds, all) in [
        (of_namespaces, &["--all", "--all-namespaces"][..]),
        (of_cluster, &["--all"]),
    ] {
        env.kubectl(&[&["delete", kinds, "--wait=false"], all].concat())
            .unwrap_or_else(|error| env.fail(&error));
    }
}
