//! Simulated author: creates, changes and deletes objects, and records their desired state.

use std::collections::BTreeMap;

use fastrand::Rng;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PropagationPolicy};
use kube::{Error, ResourceExt};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::database_origins;
use crate::env::{NAMESPACE, TestEnv, database, resource_of};
use crate::refusals;
use crate::vector_objects;

/// Number of databases.
pub const DATABASES: usize = 100;

/// Prefixes of the names of objects, each for one kind, with the number of its objects, and with the share of the
/// operations that concern them, in tenths.
const KINDS: [(&str, usize, usize); 5] = [
    ("database", DATABASES, 3),
    ("echo", 100, 3),
    ("pipeline", 20, 2),
    ("agents", 1, 1),
    ("aggregators", 1, 1),
];

/// Desired state of one object.
pub enum DesiredState {
    /// The object exists as it was last applied, with this UID. `before` has its earlier forms.
    Exists {
        object: Value,
        uid: String,
        before: Vec<Value>,
    },
    /// The object was deleted and may still exist.
    Deleted { like: Value },
}

pub struct Author {
    client: kube::Client,
    rng: Rng,
    desired: BTreeMap<String, DesiredState>,
    done: BTreeMap<&'static str, usize>,
}

impl Author {
    pub fn new(env: &TestEnv, seed: u64) -> Self {
        Self {
            client: env.cluster.client(),
            rng: Rng::with_seed(seed + 2_000),
            desired: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    pub fn desired(&self) -> &BTreeMap<String, DesiredState> {
        &self.desired
    }

    /// Number of operations, by name.
    pub fn has_done(&self) -> &BTreeMap<&'static str, usize> {
        &self.done
    }

    pub async fn makes_all(&mut self) {
        for (kind, count, _) in KINDS {
            for at in 0..count {
                let object = self.draws(&format!("{kind}-{at}"));
                self.applies(object, "made").await;
            }
        }
    }

    pub async fn does_something(&mut self) {
        let shares = KINDS.iter().flat_map(|it| std::iter::repeat_n(it, it.2));
        let shares: Vec<_> = shares.collect();
        let (kind, count, _) = shares[self.rng.usize(..shares.len())];
        let name = format!("{kind}-{}", self.rng.usize(..*count));
        match self.desired.get(&name) {
            Some(DesiredState::Exists { object, .. }) if self.rng.u8(..4) == 0 => {
                let object = object.clone();
                self.deletes(object).await;
            }
            Some(DesiredState::Deleted { like }) => {
                let like = like.clone();
                // An object that still exists would be changed during its deletion.
                if self.is_gone(&like).await {
                    let object = self.draws(&name);
                    self.applies(object, "made again").await;
                }
            }
            _ => {
                let object = self.draws(&name);
                self.applies(object, "changed").await;
            }
        }
    }

    /// Changes the maintenance windows of some databases.
    pub async fn changes_windows(&mut self) {
        let databases = self.desired.values().filter_map(|desired| match desired {
            DesiredState::Exists { object, .. } if object["kind"] == "CloudDatabase" => {
                Some(object)
            }
            _ => None,
        });
        let databases: Vec<_> = databases.take(10).cloned().collect();
        for mut object in databases {
            refusals::add_window(&mut object, &mut self.rng);
            self.applies(object, "changed").await;
        }
    }

    pub async fn deletes_all(&mut self) {
        let existing = self.desired.values().filter_map(|desired| match desired {
            DesiredState::Exists { object, .. } => Some(object.clone()),
            DesiredState::Deleted { .. } => None,
        });
        for object in existing.collect::<Vec<_>>() {
            self.deletes(object).await;
        }
    }

    /// Object with that name, and with random values in some fields.
    fn draws(&mut self, name: &str) -> Value {
        let kind = name.split('-').next().unwrap_or_default();
        match kind {
            "echo" => json!({
                "apiVersion": "demo.example.com/v1alpha1",
                "kind": "Echo",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"text": format!("text {}", self.rng.u32(..)), "replicas": self.rng.i32(0..2)},
            }),
            "pipeline" => vector_objects::pipeline(name, &mut self.rng),
            "agents" => vector_objects::workload("Vector", name, &mut self.rng),
            "aggregators" => vector_objects::workload("VectorAggregator", name, &mut self.rng),
            _ => {
                let mut object = database(name);
                let class = ["micro", "small", "medium"][self.rng.usize(..3)];
                object["spec"]["instanceClass"] = json!(format!("db.t4g.{class}"));
                object["spec"]["backup"] = json!({"retentionDays": self.rng.i32(1..8)});
                let earlier = self.desired.get(name).map(|desired| match desired {
                    DesiredState::Exists { object, .. } => object.clone(),
                    // Its instance is gone.
                    DesiredState::Deleted { .. } => json!({}),
                });
                refusals::add_window(&mut object, &mut self.rng);
                database_origins::add(&mut object, name, earlier.as_ref());
                object
            }
        }
    }

    async fn applies(&mut self, object: Value, how: &'static str) {
        let api = self.api(&object);
        let name = name_of(&object);
        let params = PatchParams::apply("author").force();
        let uid = eventually("the apply of an object", async || {
            let stored = api.patch(&name, &params, &Patch::Apply(&object)).await;
            stored.ok()?.uid()
        });
        let uid = uid.await.expect("the object is stored");
        let before = match self.desired.remove(&name) {
            Some(DesiredState::Exists {
                object, mut before, ..
            }) => {
                before.push(object);
                before
            }
            _ => Vec::new(),
        };
        let desired = DesiredState::Exists {
            object,
            uid,
            before,
        };
        self.desired.insert(name, desired);
        *self.done.entry(how).or_default() += 1;
    }

    async fn deletes(&mut self, object: Value) {
        let api = self.api(&object);
        let name = name_of(&object);
        let policies = [PropagationPolicy::Background, PropagationPolicy::Foreground];
        let params = DeleteParams {
            propagation_policy: Some(policies[self.rng.usize(..2)].clone()),
            ..DeleteParams::default()
        };
        let deleted = eventually("the deletion of an object", async || {
            match api.delete(&name, &params).await {
                Ok(_) => Some(()),
                Err(Error::Api(status)) if status.code == 404 => Some(()),
                Err(_) => None,
            }
        });
        deleted.await.expect("deletion begins");
        self.desired
            .insert(name, DesiredState::Deleted { like: object });
        *self.done.entry("deleted").or_default() += 1;
    }

    async fn is_gone(&self, like: &Value) -> bool {
        matches!(self.api(like).get_opt(&name_of(like)).await, Ok(None))
    }

    fn api(&self, like: &Value) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource_of(like))
    }
}

fn name_of(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str();
    name.expect("the object has a name").to_owned()
}
