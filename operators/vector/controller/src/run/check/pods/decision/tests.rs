use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use lockstep_vector_api::{VectorVersion, Workload, WorkloadRole};
use lockstep_vector_assembly::{PresentState, RunnablePipeline, assemble};
use serde_json::json;

use super::*;
use crate::owned::{Cluster, ClusterScopedNames};
use crate::run::check::pods::checks::ObservedPod;
use crate::run::check::pods::pod_state::PodState;
use crate::run::check::pods::records::Records;

fn options() -> AssemblyOptions {
    AssemblyOptions::new(WorkloadRole::Agent)
}

fn settings() -> Settings {
    let cluster = Cluster {
        vector_version: VectorVersion::parse("0.57").expect("a version"),
        has_pod_monitors: false,
        cluster_scoped_names: ClusterScopedNames::Plain,
        program_image: None,
    };
    Settings::new(&Workload::default(), &cluster)
}

/// Returns the parts of pipelines, each with the name of its sink.
fn parts(pipelines: &[(&str, &str)]) -> Vec<PipelinePart> {
    let pipelines = pipelines.iter().map(|(name, sink)| RunnablePipeline {
        namespace: Some("n".to_owned()),
        name: (*name).to_owned(),
        generation: 1,
        spec: json!({
            "secret": {"s": {"type": "kubernetes_secret", "name": "secret"}},
            "sources": {"in": {"type": "kubernetes_logs"}},
            "sinks": {*sink: {
                "type": "blackhole", "inputs": ["in"],
                "key": (*sink == "secret").then_some("SECRET[s.k]"),
            }},
        }),
        ..RunnablePipeline::default()
    });
    assemble(&options(), &pipelines.collect::<Vec<_>>()).parts
}

fn key(name: &str) -> PipelineKey {
    PipelineKey {
        namespace: Some("n".to_owned()),
        name: name.to_owned(),
    }
}

fn keyed(parts: Vec<PipelinePart>) -> BTreeMap<PipelineKey, PipelinePart> {
    let parts = parts.into_iter();
    parts.map(|part| (part.pipeline.clone(), part)).collect()
}

/// A workload whose check Pods end as soon as they are started.
struct World {
    before: BTreeMap<PipelineKey, PipelinePart>,
    taken_over: BTreeSet<PipelineKey>,
    forced: BTreeMap<PipelineKey, String>,
    secret_versions: BTreeMap<(String, String), Option<String>>,
    together: BTreeSet<PipelineKey>,
    records: Records,
    pods: Vec<ObservedPod>,
    /// Number of Pods that were started.
    started: usize,
    /// Number of Pods that may be started in each reconciliation.
    slots: usize,
}

impl World {
    fn new(before: &[(&str, &str)]) -> Self {
        Self {
            before: keyed(parts(before)),
            taken_over: BTreeSet::new(),
            forced: BTreeMap::new(),
            secret_versions: BTreeMap::new(),
            together: BTreeSet::new(),
            records: Records::default(),
            pods: Vec::new(),
            started: 0,
            slots: 9,
        }
    }

    /// Reconciles once. `state` is the state of a Pod that is started, by the sinks of what it checks.
    fn reconcile(
        &mut self,
        now: &[(&str, &str)],
        state: impl Fn(&[&str]) -> PodState,
    ) -> BTreeMap<PipelineKey, String> {
        let parts = parts(now);
        let (records, pods) = (self.records.clone(), self.pods.clone());
        let mut checks = Checks::new("logs-agent", Timestamp::UNIX_EPOCH, records, pods);
        let pipelines = Pipelines {
            options: &options(),
            parts: &parts,
            before: &self.before,
            present: PresentState::none(),
            taken_over: self.taken_over.clone(),
            forced: self.forced.clone(),
            secret_versions: self.secret_versions.clone(),
            together: self.together.clone(),
        };
        let decision = Decision::new(&pipelines, &settings(), &mut checks);
        let finished = checks.finish(self.slots);
        let pods = finished.pods.into_iter().map(|pod| {
            let mut known = self.pods.iter();
            let is_new = known.all(|it| it.name != pod.name);
            self.started += usize::from(is_new);
            let config = pipelines
                .configuration(&decision.candidates[&pod.fingerprint])
                .config;
            let sinks = config["sinks"].as_object().expect("sinks").keys();
            let sinks: Vec<_> = sinks
                .map(|name| name.rsplit("__").next().expect("a name"))
                .collect();
            ObservedPod {
                name: pod.name,
                fingerprint: pod.fingerprint,
                state: state(&sinks),
            }
        });
        self.pods = pods.collect();
        self.records = finished.records;
        self.together = decision.together;
        let kept = parts.into_iter().filter_map(|part| {
            if decision.held.contains_key(&part.pipeline) {
                self.before.get(&part.pipeline).cloned()
            } else {
                Some(part)
            }
        });
        self.before = keyed(kept.collect());
        decision.held
    }

    /// Reconciles until nothing changes any more. Returns the pipelines that are held.
    fn settle(
        &mut self,
        now: &[(&str, &str)],
        state: impl Fn(&[&str]) -> PodState,
    ) -> BTreeMap<PipelineKey, String> {
        for _ in 0..20 {
            let held = self.reconcile(now, &state);
            if self.pods.is_empty() {
                return held;
            }
        }
        panic!("the checks do not end: {:?}", self.pods);
    }

    fn running(&self) -> Vec<String> {
        let ids = self.before.values().flat_map(|part| part.sinks.keys());
        ids.cloned().collect()
    }
}

fn accepts(_: &[&str]) -> PodState {
    PodState::Passed
}

/// Rejects configurations with these sinks.
fn rejects(sinks: &'static [&'static str]) -> impl Fn(&[&str]) -> PodState {
    move |found| {
        if sinks.iter().all(|it| found.contains(it)) {
            PodState::Failed(Some("x Sink \"n__b__bad\": wrong".to_owned()))
        } else {
            PodState::Passed
        }
    }
}

#[test]
fn what_runs_already_is_not_checked_and_a_changed_pipeline_alone_is_checked_once() {
    let mut world = World::new(&[("a", "x")]);
    assert!(world.settle(&[("a", "x")], accepts).is_empty());
    assert_eq!(world.started, 0);
    let held = world.reconcile(&[("a", "y")], accepts);
    assert_eq!(held[&key("a")], "waits for a check in a Pod");
    assert_eq!(world.running(), ["n__a__x"]);
    world.settle(&[("a", "y")], accepts);
    assert_eq!(
        (world.running(), world.started),
        (vec!["n__a__y".to_owned()], 1)
    );
    // The earlier version runs nowhere any more, and was never checked. The present one was.
    world.settle(&[("a", "x")], accepts);
    world.settle(&[("a", "y")], accepts);
    assert_eq!(world.started, 2);
}

#[test]
fn pipelines_that_another_operator_has_published_run_on_without_a_check() {
    let mut world = World::new(&[]);
    world.taken_over = [key("a")].into();
    // The other operator has the same annotation.
    world.forced = BTreeMap::from([(key("a"), "1".to_owned())]);
    let held = world.reconcile(&[("a", "x"), ("b", "y")], accepts);
    assert_eq!(held.keys().collect::<Vec<_>>(), [&key("b")]);
    assert_eq!(world.running(), ["n__a__x"]);
}

#[test]
fn changed_pipelines_are_checked_alone_and_then_together_with_the_others() {
    let mut world = World::new(&[("a", "x")]);
    let now = [("a", "x"), ("b", "y"), ("c", "z")];
    world.reconcile(&now, accepts);
    assert_eq!(world.started, 2);
    let held = world.reconcile(&now, accepts);
    assert_eq!(world.started, 3);
    let message = "together with all pipelines of the workload, it waits for a check in a Pod";
    assert_eq!(held[&key("b")], message);
    assert!(world.settle(&now, accepts).is_empty());
    assert_eq!(world.running(), ["n__a__x", "n__b__y", "n__c__z"]);
    // The removal of a pipeline is checked by nothing.
    world.settle(&[("b", "y")], accepts);
    assert_eq!(world.started, 3);
}

#[test]
fn a_rejected_pipeline_runs_as_before_and_the_others_are_published() {
    let mut world = World::new(&[("b", "x")]);
    let now = [("a", "good"), ("b", "bad")];
    let held = world.settle(&now, rejects(&["bad"]));
    let message = "Vector rejects the configuration: x Sink \"bad\": wrong";
    assert_eq!(held, BTreeMap::from([(key("b"), message.to_owned())]));
    assert_eq!(world.running(), ["n__a__good", "n__b__x"]);
    let started = world.started;
    assert_eq!(world.settle(&now, accepts), held, "it is not checked again");
    assert_eq!(world.started, started);
    world.forced = BTreeMap::from([(key("b"), "1".to_owned())]);
    assert!(world.settle(&now, accepts).is_empty());
    assert_eq!(world.running(), ["n__a__good", "n__b__bad"]);
}

#[test]
fn a_demanded_check_of_a_pipeline_that_runs_is_made_once_for_each_value() {
    let mut world = World::new(&[("a", "x")]);
    for (value, started) in [("1", 1), ("1", 1), ("2", 2), ("1", 2)] {
        world.forced = BTreeMap::from([(key("a"), value.to_owned())]);
        assert!(world.settle(&[("a", "x")], accepts).is_empty());
        assert_eq!(
            (world.started, world.running()),
            (started, vec!["n__a__x".to_owned()]),
            "{value}"
        );
    }
}

#[test]
fn pipelines_that_vector_rejects_only_together_do_not_keep_others_from_running() {
    let mut world = World::new(&[("a", "first")]);
    let now = [("a", "first"), ("b", "second"), ("c", "other")];
    let held = world.settle(&now, rejects(&["first", "second"]));
    assert_eq!(held.keys().collect::<Vec<_>>(), [&key("b")]);
    let message = &held[&key("b")];
    assert!(
        message.starts_with("Vector accepts this pipeline alone"),
        "{message}"
    );
    assert_eq!(world.running(), ["n__a__first", "n__c__other"]);
}

#[test]
fn pipelines_that_have_passed_alone_do_not_wait_for_the_others() {
    let mut world = World::new(&[]);
    world.slots = 1;
    let now = [("a", "v"), ("b", "w"), ("c", "x"), ("d", "y")];
    // One Pod for the first pipeline, which is alone in the workload, and two for the second one.
    for _ in 0..3 {
        world.reconcile(&now, accepts);
    }
    assert_eq!(world.running(), ["n__a__v"]);
    for _ in 0..2 {
        world.reconcile(&now, accepts);
    }
    assert_eq!(world.running(), ["n__a__v", "n__b__w"]);
}

#[test]
fn a_rejected_pipeline_is_checked_again_when_its_secret_changes() {
    let mut world = World::new(&[]);
    let version = |secret: &str, version: &str| {
        let secret = ("n".to_owned(), secret.to_owned());
        (secret, Some(version.to_owned()))
    };
    let now = [("a", "secret")];
    world.secret_versions = [version("secret", "1"), version("other", "1")].into();
    assert_eq!(world.settle(&now, rejects(&[])).len(), 1);
    world.secret_versions = [version("secret", "1"), version("other", "2")].into();
    assert_eq!(world.settle(&now, accepts).len(), 1);
    assert_eq!(world.started, 1);
    world.secret_versions = [version("secret", "2"), version("other", "2")].into();
    assert!(world.settle(&now, accepts).is_empty());
}

#[test]
fn a_demanded_check_is_made_together_with_the_others_too() {
    let mut world = World::new(&[("a", "first")]);
    let now = [("a", "first"), ("b", "second")];
    let held = world.settle(&now, rejects(&["first", "second"]));
    assert_eq!(held.keys().collect::<Vec<_>>(), [&key("b")]);
    world.forced = BTreeMap::from([(key("b"), "1".to_owned())]);
    assert!(world.settle(&now, accepts).is_empty());
    assert_eq!(world.running(), ["n__a__first", "n__b__second"]);
}

#[test]
fn a_check_of_all_pipelines_ends_although_others_change_meanwhile() {
    let mut world = World::new(&[]);
    let (left, slow) = (Duration::from_secs(9), |sinks: &[&str]| sinks.len() > 1);
    let state = |sinks: &[&str]| {
        if slow(sinks) {
            PodState::Running(left)
        } else {
            PodState::Passed
        }
    };
    let mut now = vec![("a", "v"), ("b", "w")];
    world.reconcile(&now, state);
    world.reconcile(&now, state);
    let together: Vec<_> = world.pods.iter().map(|pod| pod.name.clone()).collect();
    assert_eq!(together.len(), 1);
    now.push(("c", "x"));
    for _ in 0..3 {
        world.reconcile(&now, state);
    }
    let pods: Vec<_> = world.pods.iter().map(|pod| pod.name.clone()).collect();
    assert_eq!(pods, together, "the Pod is not replaced");
    world.pods[0].state = PodState::Passed;
    let held = world.reconcile(&now, state);
    assert_eq!(
        held[&key("c")],
        "waits until other changed pipelines are published"
    );
    assert_eq!(world.running(), ["n__a__v", "n__b__w"]);
    world.settle(&now, accepts);
    assert_eq!(world.running(), ["n__a__v", "n__b__w", "n__c__x"]);
}
