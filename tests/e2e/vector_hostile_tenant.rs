//! A hostile tenant who writes all kinds of objects: the pipelines of another tenant are published all the same.
//!
//! ```text
//! seed ─► objects of the tenant ─► API server ─► controller ─► published configuration ─► does it start?
//!                                                     ▲                    └─► the other tenant's part
//!                                  change of the other tenant
//! ```
//!
//! A stand-in for Vector, which shares no code with the validation of pipelines, decides if Vector starts. Ten thousand objects:
//!
//! ```text
//! HOSTILE_OBJECTS=10000 cargo test -p lockstep --test e2e -- --nocapture vector_hostile_tenant
//! ```

mod generator;
mod neighbour;
mod published;

use std::env;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use lockstep_envtest::Installation;
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads, resource_of};
use crate::running_vector::start_without_pods;
use crate::usage::Usage;
use crate::vector_hostile_tenant::generator::{Action, Generator, NAMESPACES};
use crate::vector_hostile_tenant::neighbour::Neighbour;

/// Namespace of the agents and the aggregators.
const INFRA: &str = "infra";

/// Namespace with an aggregator, in which both tenants have pipelines.
const SHARED: &str = "team";

/// Number of objects, unless `HOSTILE_OBJECTS` has another one.
const OBJECTS: usize = 200;

/// Number of objects between two checks.
const BATCH: usize = 20;

/// Number of requests at the same time.
const CONCURRENCY: usize = 4;

/// Memory limit of the controller in the chart, in MiB.
const MEMORY_LIMIT: u64 = 512;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_tenant_writes_another_one_is_published() {
    let count =
        env::var("HOSTILE_OBJECTS").map_or(OBJECTS, |count| count.parse().expect("a number"));
    let seed = env::var("HOSTILE_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let env = start_without_pods(crate::running_vector::KINDS).await;
    for namespace in NAMESPACES.into_iter().chain([INFRA, neighbour::NAMESPACE]) {
        env.kubectl(&["create", "namespace", namespace])
            .expect("a namespace");
        let allowed = Installation::allow_secrets(&env.cluster, namespace).await;
        allowed.expect("access to Secrets");
    }
    allow_workloads(&env.cluster, INFRA);
    let agents = json!({"agent": {
        "componentNames": "dashes", "internalMetrics": true, "api": {"enabled": true},
    }});
    env.apply(&object("Vector", INFRA, "shared", &agents));
    let aggregator = json!({"api": {"enabled": true}});
    env.apply(&object("VectorAggregator", SHARED, "shared", &aggregator));
    let mut tenants = Tenants {
        neighbour: Neighbour::start(&env).await,
        env,
        accepted: 0,
    };
    for action in Generator::first() {
        assert!(perform(&tenants.env, &action).await, "{action}");
    }
    for actions in Generator::known() {
        tenants.endures(seed, actions).await;
    }
    let mut generator = Generator::new(seed);
    let mut done = 0;
    while done < count {
        let actions: Vec<_> = (0..BATCH.min(count - done))
            .map(|_| generator.next())
            .collect();
        done += actions.len();
        tenants.endures(seed, actions).await;
    }
    tenants.report(done);
}

/// Returns an object of a namespace.
fn object(kind: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    })
}

/// The hostile tenant and the other one.
struct Tenants {
    env: TestEnv,
    neighbour: Neighbour,
    /// Number of objects that were accepted.
    accepted: usize,
}

impl Tenants {
    /// Performs the actions of the hostile tenant, and then changes the pipelines of the other one. Fails with the actions that
    /// make that impossible.
    async fn endures(&mut self, seed: u64, actions: Vec<Action>) {
        let Err(error) = self.endure(&actions).await else {
            return;
        };
        let found = self.bisect(actions).await;
        let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
        let caused = shown.join("\n");
        self.env
            .fail(&format!("seed {seed}: {error}\ncaused by:\n{caused}"));
    }

    /// Performs the actions of the hostile tenant, and then changes the pipelines of the other one. Returns an error if that is
    /// not possible.
    async fn endure(&mut self, actions: &[Action]) -> Result<(), String> {
        let env = &self.env;
        let done = stream::iter(actions.iter().map(|action| perform(env, action)));
        let done: Vec<bool> = done.buffered(CONCURRENCY).collect().await;
        self.accepted += done.into_iter().filter(|done| *done).count();
        self.neighbour.changes(env).await?;
        let memory = Usage::of(self.env.installation.controller().id()).memory;
        if memory > MEMORY_LIMIT {
            return Err(format!("the controller has {memory} MiB of memory"));
        }
        Ok(())
    }

    /// Returns the smallest half, quarter and so on of some actions that has the same effect after everything was removed.
    async fn bisect(&mut self, mut actions: Vec<Action>) -> Vec<Action> {
        // A failure is known to occur.
        self.neighbour.deadline = neighbour::SHORT_DEADLINE;
        while actions.len() > 1 {
            let second = actions.split_off(actions.len() / 2);
            let mut guilty = None;
            for half in [&actions, &second] {
                self.remove_all().await;
                if self.endure(half).await.is_err() {
                    guilty = Some(half.clone());
                    break;
                }
            }
            match guilty {
                Some(half) => actions = half,
                None => {
                    // Only together.
                    actions.extend(second);
                    break;
                }
            }
        }
        actions
    }

    async fn remove_all(&mut self) {
        for namespace in NAMESPACES {
            let kinds = "vectorpipelines.observability.kaasops.io,secrets,services";
            let removed =
                self.env
                    .kubectl(&["delete", kinds, "-l", generator::LABEL, "-n", namespace]);
            removed.unwrap_or_else(|error| self.env.fail(&error));
        }
        // An error is one of the objects that are gone by now.
        let _ = self.neighbour.changes(&self.env).await;
    }

    fn report(&mut self, done: usize) {
        let mut seconds: Vec<_> = self
            .neighbour
            .times
            .iter()
            .map(Duration::as_secs_f64)
            .collect();
        seconds.sort_by(f64::total_cmp);
        let at = |share: usize| seconds[(seconds.len() - 1) * share / 100];
        println!(
            "{done} actions, {} accepted; the other tenant is published after {:.1} s (median), {:.1} s (95 %), {:.1} s (longest); the controller has {} MiB",
            self.accepted,
            at(50),
            at(95),
            at(100),
            Usage::of(self.env.installation.controller().id()).memory,
        );
    }
}

/// Returns the API of the kind and the namespace of an object.
fn api(env: &TestEnv, object: &Value) -> Api<DynamicObject> {
    let resource = match object["kind"].as_str() {
        Some("Secret") => ApiResource::erase::<Secret>(&()),
        Some("Service") => ApiResource::erase::<Service>(&()),
        _ => resource_of(object),
    };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Api::namespaced_with(env.cluster.client(), namespace, &resource)
}

/// Performs an action. Returns true if it was accepted.
async fn perform(env: &TestEnv, action: &Action) -> bool {
    match action {
        Action::Apply(object) => {
            let api = api(env, object);
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let applied: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
            let params = PatchParams::apply("tenant").force();
            api.patch(name, &params, &Patch::Apply(&applied))
                .await
                .is_ok()
        }
        Action::Delete(object) => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let api = api(env, object);
            api.delete(name, &DeleteParams::default()).await.is_ok()
        }
    }
}
