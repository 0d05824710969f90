//! Objects that run Vector, compared with the workloads and pipelines.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::env::TestEnv;
use crate::vector_objects::{program, runner_of, waits};
use crate::workload::{Author, DesiredState};

/// Label selector of the owned objects, and of all others.
pub const OWNED: &str = "app.kubernetes.io/managed-by=vector-operator";
pub const NOT_OWNED: &str = "app.kubernetes.io/managed-by!=vector-operator";

/// Types of the owned objects.
const TYPES: [(&str, &str, &str); 7] = [
    ("", "Secret", "secrets"),
    ("", "Service", "services"),
    ("", "ServiceAccount", "serviceaccounts"),
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "Deployment", "deployments"),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        "clusterrolebindings",
    ),
];

/// The owned objects by kind and name.
pub struct VectorState {
    owned: BTreeMap<(&'static str, String), DynamicObject>,
}

impl VectorState {
    /// Reads the state; None if the API server does not respond.
    pub async fn read(env: &TestEnv) -> Option<Self> {
        let mut owned = BTreeMap::new();
        for (group, kind, plural) in TYPES {
            let gvk = GroupVersionKind::gvk(group, "v1", kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            let api: Api<DynamicObject> = Api::all_with(env.cluster.client(), &resource);
            let params = ListParams::default().labels(OWNED);
            let objects = api.list(&params).await.ok()?;
            owned.extend(objects.into_iter().map(|it| ((kind, it.name_any()), it)));
        }
        Some(Self { owned })
    }

    /// Names of all owned objects.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.owned
            .keys()
            .map(|(kind, name)| format!("{kind} {name}"))
    }

    /// Differences from the desired state, as text.
    pub fn differences(&self, author: &Author) -> Vec<String> {
        let mut found = Vec::new();
        let mut workloads = BTreeMap::new();
        for (name, desired) in author.desired() {
            let DesiredState::Exists { object, uid, .. } = desired else {
                continue;
            };
            let Some(kind) = object["kind"].as_str() else {
                continue;
            };
            if let Some(configuration) = configuration_secret(kind, name) {
                workloads.insert(name.as_str(), uid);
                found.extend(self.configuration_differences(author, kind, configuration));
            }
        }
        for ((kind, name), object) in &self.owned {
            let instance = object.labels().get("app.kubernetes.io/instance");
            let uid = instance.and_then(|instance| workloads.get(instance.as_str()));
            let owners: Vec<_> = object.owner_references().iter().map(|it| &it.uid).collect();
            let is_owned = match uid {
                Some(uid) => owners == [*uid] || object.namespace().is_none(),
                None => false,
            };
            if !is_owned {
                found.push(format!("{kind} {name} of {instance:?}, owners {owners:?}"));
            }
        }
        found
    }

    /// Compares a published configuration with the pipelines of that kind of workload.
    fn configuration_differences(
        &self,
        author: &Author,
        kind: &str,
        (secret, key): (String, &str),
    ) -> Vec<String> {
        let Some(configuration) = self
            .owned
            .get(&("Secret", secret.clone()))
            .and_then(|secret| configuration(secret, key))
        else {
            return vec![format!("Secret {secret} has no configuration")];
        };
        let mut running = programs(&configuration);
        let mut found = Vec::new();
        for (name, desired) in author.desired() {
            let DesiredState::Exists { object, before, .. } = desired else {
                continue;
            };
            if object["kind"] != "VectorPipeline" || runner_of(name) != kind {
                continue;
            }
            let runs = running.remove(name);
            let is_so = if waits(object) {
                let mut earlier = before.iter().filter(|earlier| !waits(earlier));
                runs.as_deref()
                    .is_none_or(|runs| earlier.any(|earlier| program(earlier) == runs))
            } else {
                runs.as_deref() == Some(program(object))
            };
            if !is_so {
                found.push(format!(
                    "{secret} runs {runs:?} for {name} instead of {}",
                    program(object)
                ));
            }
        }
        let left = running.into_iter();
        found.extend(left.map(|(name, program)| format!("{secret} runs {program} for {name}")));
        found
    }
}

/// Difference of the status of a pipeline from the desired state.
pub fn status_difference(
    author: &Author,
    name: &str,
    object: &Value,
    existing: &DynamicObject,
) -> Option<String> {
    let runner = author.desired().values().any(|desired| match desired {
        DesiredState::Exists { object, .. } => object["kind"] == runner_of(name),
        DesiredState::Deleted { .. } => false,
    });
    let status = &existing.data["status"];
    let running = status["runningGeneration"].as_i64();
    let is_so = match (runner, waits(object)) {
        (true, false) => running == existing.metadata.generation,
        (true, true) => running.is_some() && running < existing.metadata.generation,
        (false, _) => running.is_none(),
    };
    (!is_so).then(|| format!("{name} has the status {status}"))
}

/// Secret and key with the configuration of a workload.
fn configuration_secret(kind: &str, name: &str) -> Option<(String, &'static str)> {
    match kind {
        "Vector" => Some((format!("{name}-agent"), "agent.json")),
        "VectorAggregator" => Some((format!("{name}-aggregator"), "config.json")),
        _ => None,
    }
}

/// Configuration in a Secret.
pub fn configuration(secret: &DynamicObject, key: &str) -> Option<Value> {
    let content: ByteString = serde_json::from_value(secret.data["data"][key].clone()).ok()?;
    serde_json::from_slice(&content.0).ok()
}

/// Programs of a configuration by the name of their pipeline.
fn programs(configuration: &Value) -> BTreeMap<String, String> {
    let transforms = configuration["transforms"]
        .as_object()
        .into_iter()
        .flatten();
    let programs = transforms.filter_map(|(id, transform)| {
        let pipeline = id.split("__").nth(1)?;
        Some((
            pipeline.to_owned(),
            transform["source"].as_str()?.to_owned(),
        ))
    });
    programs.collect()
}
