//! The other tenant, and its pipelines.

use std::time::{Duration, Instant};

use lockstep_envtest::eventually_within;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::vector_hostile_tenant::published::{Published, WORKLOADS};
use crate::vector_hostile_tenant::{INFRA, SHARED, object};

pub const NAMESPACE: &str = "victim";

/// Namespaces and names of its pipelines for the agents and the aggregator. With dashes, the components of a pipeline `q` in a
/// namespace `victim-p` have the same names as those of the first one.
const PIPELINES: [(&str, &str); 2] = [(NAMESPACE, "p-q"), (SHARED, "served")];

/// Names of the components of each.
const COMPONENTS: [&str; 3] = ["in", "t", "out"];

/// Name of its Secrets.
const SECRET: &str = "neighbours";

/// Time in which a change must be published.
const DEADLINE: Duration = Duration::from_mins(1);

/// The same while the cause of a failure is looked for.
pub const SHORT_DEADLINE: Duration = Duration::from_secs(10);

/// Time in which a configuration that was just written in parts starts.
const SETTLES: Duration = Duration::from_secs(15);

/// The other tenant, with a pipeline for each workload.
pub struct Neighbour {
    changes: u32,
    /// Time in which a change must be published.
    pub deadline: Duration,
    /// Components of the tenant, without the URI that changes.
    expected: Vec<Value>,
    /// Time that each change took until it was published.
    pub times: Vec<Duration>,
}

impl Neighbour {
    /// Starts its pipelines.
    pub async fn start(env: &TestEnv) -> Self {
        for (namespace, _) in PIPELINES {
            env.apply(&json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace},
                "stringData": {"token": "correct-horse"},
            }));
        }
        let mut neighbour = Self {
            changes: 0,
            deadline: DEADLINE,
            expected: Vec::new(),
            times: Vec::new(),
        };
        let started = neighbour.changes(env).await;
        started.unwrap_or_else(|error| env.fail(&error));
        neighbour.times.clear();
        neighbour.expected = WORKLOADS
            .iter()
            .map(|workload| neighbour.part(&Published::read(env, workload).config))
            .collect();
        neighbour
    }

    fn uri(&self) -> String {
        format!("http://victim/{}", self.changes)
    }

    /// Returns its pipelines.
    fn pipelines(&self) -> [Value; 2] {
        let sources = [
            json!({"in": {"type": "kubernetes_logs"}}),
            json!({"in": {"type": "http_server", "address": "0.0.0.0:9100"}}),
        ];
        let mut specs = sources.map(|sources| {
            json!({
                "secret": {"s": {"type": "kubernetes_secret", "name": SECRET}},
                "sources": sources,
                "transforms": {"t": {"type": "remap", "inputs": ["in"], "source": ".victim = true"}},
                "sinks": {"out": {
                    "type": "http", "inputs": ["t"], "uri": self.uri(), "encoding": {"codec": "json"},
                    "auth": {"strategy": "bearer", "token": "SECRET[s.token]"},
                    "buffer": {"type": "disk", "max_size": 268_435_488},
                }},
            })
        });
        std::array::from_fn(|at| {
            let (namespace, name) = PIPELINES[at];
            object("VectorPipeline", namespace, name, &specs[at].take())
        })
    }

    /// Returns its components of a configuration, without the URI that changes.
    fn part(&self, config: &Value) -> Value {
        let mut part = json!({});
        for block in ["sources", "transforms", "sinks"] {
            for (id, component) in config[block].as_object().into_iter().flatten() {
                if is_its_own(id) {
                    part[block][id] = component.clone();
                }
            }
        }
        let text = part.to_string().replace(&self.uri(), "URI");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Changes its pipelines, and checks what is published.
    pub async fn changes(&mut self, env: &TestEnv) -> Result<(), String> {
        self.changes += 1;
        let started = Instant::now();
        for pipeline in self.pipelines() {
            env.kubectl_apply(&pipeline)?;
        }
        let uri = format!("\"{}\"", self.uri());
        for (at, workload) in WORKLOADS.iter().enumerate() {
            let published = eventually_within(
                self.deadline,
                "the change of the other tenant",
                async || {
                    let published = Published::read(env, workload);
                    published.config["sinks"]
                        .to_string()
                        .contains(&uri)
                        .then_some(published)
                },
            );
            let published = published
                .await
                .map_err(|error| format!("{error} in {workload:?}\n{}", env.statuses()))?;
            if let Some(expected) = self.expected.get(at) {
                let part = self.part(&published.config);
                if part != *expected {
                    return Err(format!(
                        "its part of {workload:?} is {part}, and was {expected}"
                    ));
                }
            }
            published.hides_from_others(is_its_own)?;
            if workload.0 == INFRA && !published.serves_metrics() {
                return Err("the agents do not serve their own metrics".to_owned());
            }
        }
        self.times.push(started.elapsed());
        is_reconciled(env, "vector/shared", INFRA).await?;
        is_reconciled(env, "vectoraggregator/shared", SHARED).await?;
        for workload in &WORKLOADS {
            let mut last = String::new();
            let starts = eventually_within(SETTLES, "a start", async || {
                let started = Published::read(env, workload).starts();
                started.map_err(|error| last = error).ok()
            });
            let started = starts.await;
            started.map_err(|_| format!("{workload:?} does not start: {last}"))?;
        }
        // A conflict must not be decided anew by each reconciliation.
        for (workload, expected) in WORKLOADS.iter().zip(&self.expected) {
            let part = self.part(&Published::read(env, workload).config);
            if part != *expected {
                return Err(format!("its part of {workload:?} has become {part}"));
            }
        }
        Ok(())
    }
}

/// Waits until a reconciliation of a workload succeeds: another one may just have met a Secret that was being replaced.
async fn is_reconciled(env: &TestEnv, workload: &str, namespace: &str) -> Result<(), String> {
    let path = "jsonpath={.status.conditions[?(@.type=='Ready')].reason}";
    let mut last = String::new();
    let reconciled = eventually_within(SETTLES, "a reconciliation", async || {
        last = env
            .kubectl(&["get", workload, "-n", namespace, "--output", path])
            .ok()?;
        // No Pods run.
        ["Available", "ChildrenInProgress"]
            .contains(&&*last)
            .then_some(())
    });
    let reconciled = reconciled.await;
    reconciled.map_err(|_| format!("{workload} is not reconciled: {last}"))
}

/// Returns true if a component belongs to this tenant. Those of another pipeline may begin with the same words.
fn is_its_own(id: &str) -> bool {
    let [(of_agents, agents), (of_served, served)] = PIPELINES;
    let name = id.strip_prefix(&format!("{of_agents}-{agents}-"));
    let name = name.or_else(|| id.strip_prefix(&format!("{of_served}__{served}__")));
    name.is_some_and(|name| COMPONENTS.contains(&name))
}
