//! Simulated author: creates, changes and deletes objects, and records their desired state.

use std::collections::BTreeMap;

use fastrand::Rng;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PropagationPolicy};
use kube::{Error, ResourceExt};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{NAMESPACE, TestEnv, database, resource_of};

/// Number of objects of each of the two kinds.
const OBJECTS: usize = 100;

/// Desired state of one object.
pub enum DesiredState {
    /// The object exists as it was last applied, with this UID.
    Exists { object: Value, uid: String },
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
        for at in 0..OBJECTS {
            for kind in ["database", "echo"] {
                let object = self.draws(&format!("{kind}-{at}"));
                self.applies(object, "made").await;
            }
        }
    }

    pub async fn does_something(&mut self) {
        let kind = ["database", "echo"][self.rng.usize(..2)];
        let name = format!("{kind}-{}", self.rng.usize(..OBJECTS));
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
        if name.starts_with("echo") {
            return json!({
                "apiVersion": "demo.example.com/v1alpha1",
                "kind": "Echo",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"text": format!("text {}", self.rng.u32(..)), "replicas": self.rng.i32(0..2)},
            });
        }
        let mut object = database(name);
        let class = ["micro", "small", "medium"][self.rng.usize(..3)];
        object["spec"]["instanceClass"] = json!(format!("db.t4g.{class}"));
        object["spec"]["backup"] = json!({"retentionDays": self.rng.i32(1..8)});
        object
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
        self.desired
            .insert(name, DesiredState::Exists { object, uid });
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
