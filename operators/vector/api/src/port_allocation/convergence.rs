//! Simulation of pipelines that are created, changed and deleted, and validated as by the controller: in any order,
//! several concurrently, and only those of which related objects changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use crate::port_allocation::status_view::is_paused;
use crate::port_allocation::{
    addresses, index_pipeline, index_workload, keys, run_by, shared, workloads,
};

/// Event of the simulation.
#[derive(Clone, Debug)]
enum Event {
    Pipeline {
        name: usize,
        content: Option<Content>,
    },
    /// The pipeline is paused unchanged.
    Pause {
        name: usize,
    },
    Workload {
        name: usize,
        is_there: bool,
    },
}

/// Content of a pipeline.
#[derive(Clone, Debug)]
struct Content {
    ports: BTreeSet<u16>,
    labels: BTreeSet<&'static str>,
}

/// Labels that each workload selects.
const SELECTED: [&[&str]; 3] = [&["a"], &["b"], &[]];

const PIPELINES: usize = 5;

#[derive(Default)]
struct World {
    age: usize,
    pipelines: [Option<Value>; PIPELINES],
    workloads: [Option<Value>; SELECTED.len()],
    /// Pipelines that are to be validated.
    queue: BTreeSet<usize>,
}

impl World {
    fn apply(&mut self, event: Event) {
        match event {
            Event::Pipeline { name, content } => {
                let before = self.pipelines[name].take();
                let keys = before.as_ref().map(index_pipeline);
                self.pipelines[name] = content.map(|content| self.pipeline(name, &content, before));
                self.wake(name, keys.unwrap_or_default());
            }
            Event::Pause { name } => {
                if let Some(pipeline) = &mut self.pipelines[name] {
                    let before = index_pipeline(pipeline);
                    let annotations = json!({"lockstep.dev/paused": "true"});
                    pipeline["metadata"]["annotations"] = annotations;
                    self.wake(name, before);
                }
            }
            Event::Workload { name, is_there } => {
                let labels = SELECTED[name].iter().map(|label| (*label, "yes"));
                let labels: serde_json::Map<_, _> = labels
                    .map(|(name, value)| (name.to_owned(), value.into()))
                    .collect();
                self.workloads[name] = is_there.then(|| {
                    json!({
                        "kind": "VectorAggregator",
                        "metadata": {"name": name.to_string(), "namespace": "team"},
                        "spec": {"selector": {"matchLabels": labels}},
                    })
                });
                self.queue.extend(0..PIPELINES);
            }
        }
    }

    fn pipeline(&mut self, name: usize, content: &Content, before: Option<Value>) -> Value {
        let sources = content.ports.iter().map(|port| {
            let source = json!({"type": "vector", "address": format!("0.0.0.0:{port}")});
            (port.to_string(), source)
        });
        let sources: serde_json::Map<_, _> = sources.collect();
        let labels = content
            .labels
            .iter()
            .map(|label| ((*label).to_owned(), "yes".into()));
        let labels: serde_json::Map<_, _> = labels.collect();
        let mut pipeline = before.unwrap_or_else(|| {
            self.age += 1;
            let (uid, created) = (self.age.to_string(), format!("{:04}", self.age));
            json!({
                "kind": "VectorPipeline",
                "metadata": {
                    "name": name.to_string(), "namespace": "team", "uid": uid,
                    "creationTimestamp": created, "generation": 0,
                },
                "spec": {},
            })
        });
        let is_other = pipeline["spec"]["sources"] != Value::Object(sources.clone());
        if is_other {
            pipeline["spec"]["sources"] = sources.into();
            let generation = pipeline["metadata"]["generation"].as_u64();
            pipeline["metadata"]["generation"] = generation.map(|it| it + 1).into();
        }
        // A change of the labels alone does not enqueue the pipeline itself.
        if is_other || is_paused(&pipeline) {
            self.queue.insert(name);
        }
        pipeline["metadata"]["annotations"] = Value::Null;
        pipeline["metadata"]["labels"] = labels.into();
        pipeline
    }

    /// Enqueues every pipeline with an index key under which something changed.
    fn wake(&mut self, name: usize, before: (Vec<String>, crate::port_allocation::PortClaims)) {
        let now = self.pipelines[name].as_ref().map(index_pipeline);
        let now = now.unwrap_or_default();
        if now == before {
            return;
        }
        let keys: BTreeSet<_> = now.0.into_iter().chain(before.0).collect();
        for (other, pipeline) in self.pipelines.iter().enumerate() {
            let own = pipeline
                .as_ref()
                .map(crate::port_allocation::keys)
                .unwrap_or_default();
            if own.iter().any(|key| keys.contains(key)) {
                self.queue.insert(other);
            }
        }
    }

    /// Returns the desired status of a pipeline.
    fn validated(&self, name: usize) -> Option<Value> {
        let pipeline = self.pipelines[name].as_ref();
        let pipeline = pipeline.filter(|pipeline| !is_paused(pipeline))?;
        let keys = keys(pipeline);
        let others = self.pipelines.iter().flatten().map(index_pipeline);
        let others = others.filter(|(indexed, _)| indexed.iter().any(|key| keys.contains(key)));
        let others: Vec<_> = others.map(|(_, claims)| Arc::new(claims)).collect();
        let key = workloads(pipeline);
        let run = self.workloads.iter().flatten().map(index_workload);
        let run = run.filter(|(keys, _)| key.as_ref().is_some_and(|key| keys.contains(key)));
        let run: Vec<_> = run.map(|(_, workload)| Arc::new(workload)).collect();
        let shared = shared(pipeline, &others, &run);
        let taken = shared["taken"].as_array();
        let is_valid = taken.is_none_or(Vec::is_empty);
        let run_by = if is_valid {
            run_by(&shared)
        } else {
            Vec::new()
        };
        Some(json!({
            "configCheckResult": is_valid,
            "observedGeneration": pipeline["metadata"]["generation"],
            "LastAppliedPipelineHash": 1,
            "role": "aggregator",
            "addresses": addresses(pipeline, &shared, !is_valid),
            "runBy": run_by,
        }))
    }

    /// Validates some of the enqueued pipelines concurrently: each reads the previous state of the others.
    fn reconciliation(&mut self, some: &[usize]) {
        let validated: Vec<_> = some
            .iter()
            .map(|&name| (name, self.validated(name)))
            .collect();
        self.queue.retain(|name| !some.contains(name));
        for (name, status) in validated {
            let (Some(status), Some(pipeline)) = (status, &mut self.pipelines[name]) else {
                continue;
            };
            let before = index_pipeline(pipeline);
            pipeline["status"] = status;
            self.wake(name, before);
        }
    }

    fn is_valid(&self, name: usize) -> bool {
        let pipeline = self.pipelines[name].as_ref();
        pipeline.is_some_and(|it| it["status"]["configCheckResult"] == true)
    }

    /// Returns the pipelines that are valid and have a workload.
    fn running(&self) -> BTreeSet<usize> {
        let all = (0..PIPELINES).filter(|&name| self.is_valid(name));
        let all = all.filter(|&name| !self.run_by(name).is_empty());
        all.collect()
    }

    fn run_by(&self, name: usize) -> BTreeSet<usize> {
        let Some(pipeline) = &self.pipelines[name] else {
            return BTreeSet::new();
        };
        let runs = |workload: usize| {
            let mut selected = SELECTED[workload].iter();
            let is_there = self.workloads[workload].is_some();
            is_there && selected.all(|label| pipeline["metadata"]["labels"][*label] == "yes")
        };
        (0..SELECTED.len()).filter(|&it| runs(it)).collect()
    }

    /// Returns true if one Vector would run both pipelines on one port.
    fn clash(&self, one: usize, another: usize) -> bool {
        let ports = |name: usize| {
            let pipeline = self.pipelines[name].as_ref();
            let sources = pipeline.and_then(|it| it["spec"]["sources"].as_object());
            let names = sources.into_iter().flat_map(|sources| sources.keys());
            names.cloned().collect::<BTreeSet<_>>()
        };
        one != another
            && !ports(one).is_disjoint(&ports(another))
            && !self.run_by(one).is_disjoint(&self.run_by(another))
    }

    fn clashes(&self) -> bool {
        let all = self.running();
        let mut all = all.iter().filter(|&&name| !self.is_left(name));
        all.any(|&name| self.is_held_back(name, false))
    }

    /// Returns true if a running pipeline listens where this one would, including pipelines that were paused before any
    /// workload ran them if `by_what_is_left` is true.
    fn is_held_back(&self, name: usize, by_what_is_left: bool) -> bool {
        let mut others = self.running().into_iter();
        others.any(|other| self.clash(name, other) && (by_what_is_left || !self.is_left(other)))
    }

    /// Returns true if a pipeline was paused before any workload ran it. A pipeline that listens does not release its
    /// address to it.
    fn is_left(&self, name: usize) -> bool {
        let pipeline = self.pipelines[name].as_ref();
        pipeline.is_some_and(|it| is_paused(it) && it["status"]["runBy"] == json!([]))
    }
}

fn content(ports: std::ops::Range<u16>) -> impl Strategy<Value = Content> {
    let many = ports.len();
    let ports = prop::collection::btree_set(ports, 1..=many);
    let labels = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    (ports, labels).prop_map(|(ports, labels)| Content {
        ports,
        labels: labels.into_iter().collect(),
    })
}

fn event(ports: std::ops::Range<u16>) -> impl Strategy<Value = Event> {
    let content = prop::option::weighted(0.8, content(ports));
    prop_oneof![
        1 => (0..PIPELINES).prop_map(|name| Event::Pause { name }),
        8 => (0..PIPELINES, content).prop_map(|(name, content)| Event::Pipeline { name, content }),
        2 => (0..SELECTED.len(), prop::bool::weighted(0.7))
            .prop_map(|(name, is_there)| Event::Workload { name, is_there }),
    ]
}

/// Returns the configuration with a fixed seed, so that a test fails only because of a change; `LOCKSTEP_SEED=N` sets
/// another seed.
fn config() -> ProptestConfig {
    let seed = std::env::var("LOCKSTEP_SEED");
    let seed = seed.map_or(1, |seed| seed.parse().expect("LOCKSTEP_SEED is a number"));
    ProptestConfig {
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn all_pipelines_converge_and_none_waits_for_a_free_address(
        events in prop::collection::vec(event(9000..9003), 1..20),
        picks in prop::collection::vec((0..PIPELINES, 1..4_usize), 64),
    ) {
        let mut world = World::default();
        let mut picks = picks.iter().cycle();
        for event in events {
            let ousts = match &event {
                Event::Pipeline { name, .. } | Event::Pause { name } => Some(*name),
                Event::Workload { .. } => None,
            };
            let running = world.running();
            world.apply(event);
            let mut validations = 0;
            while !world.queue.is_empty() {
                validations += 1;
                prop_assert!(validations < 200, "they do not converge: {:?}", world.pipelines);
                let (first, count) = *picks.next().expect("the iterator is cyclic");
                let mut some: Vec<_> = world.queue.iter().copied().collect();
                let first = first % some.len();
                some.rotate_left(first);
                some.truncate(count);
                world.reconciliation(&some);
                if let Some(changed) = ousts {
                    let lost = running.iter().find(|&&it| it != changed && !world.is_valid(it));
                    prop_assert!(lost.is_none(), "{lost:?} lost its address to {changed}");
                }
            }
            prop_assert!(!world.clashes(), "two run on one port: {:?}", world.pipelines);
            for name in 0..PIPELINES {
                let (Some(pipeline), Some(validated)) = (&world.pipelines[name], world.validated(name)) else {
                    continue;
                };
                prop_assert_eq!(&validated, &pipeline["status"], "{} was not validated again", name);
                let waits = !world.is_valid(name);
                prop_assert_eq!(waits, world.is_held_back(name, waits), "{} waits for a free address", name);
            }
        }
    }

    /// Of all pipelines that wait for one port, one gets it, even if all are validated concurrently.
    #[test]
    fn two_pipelines_never_run_on_one_port(events in prop::collection::vec(event(9000..9001), 1..20)) {
        let mut world = World::default();
        for event in events {
            let is_workloads = matches!(event, Event::Workload { .. });
            world.apply(event);
            let mut validations = 0;
            while !world.queue.is_empty() {
                validations += 1;
                prop_assert!(validations < 200, "they do not converge: {:?}", world.pipelines);
                let all: Vec<_> = world.queue.iter().copied().collect();
                world.reconciliation(&all);
                // Two pipelines of different workloads may get a common workload.
                prop_assert!(is_workloads || !world.clashes(), "{:?}", world.pipelines);
            }
        }
    }
}
