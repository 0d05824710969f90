use std::sync::Arc;

use serde_json::json;
use shared_validation::{Accepted, Candidate, Judge, Policy, Ruleset, Rulesets};

use super::*;
use crate::pipeline::VectorPipeline;

fn pipeline(name: &str, created: &str, address: &str) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {
            "name": name, "namespace": "team", "uid": name, "generation": 1,
            "creationTimestamp": format!("2026-01-01T00:00:0{created}Z"),
        },
        "spec": {
            "sources": {"in": {"type": "vector", "address": address}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
        },
    })
}

fn on_nodes(name: &str, created: &str, address: &str) -> Value {
    let mut pipeline = pipeline(name, created, address);
    let source = json!({"type": "prometheus_remote_write", "address": address});
    pipeline["spec"]["sources"]["in"] = source;
    pipeline
}

fn runner(name: &str, spec: &Value) -> Value {
    json!({
        "kind": "VectorAggregator",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": spec,
    })
}

fn anybody() -> Vec<Value> {
    vec![runner("all", &json!({}))]
}

fn labelled(mut pipeline: Value, run: &str) -> Value {
    pipeline["metadata"]["labels"] = json!({"run": run});
    pipeline
}

fn told(mut pipeline: Value, is_valid: bool, addresses: &[&str], run_by: &[&str]) -> Value {
    let role = role(&pipeline).map(Role::as_str);
    pipeline["status"] = json!({
        "configCheckResult": is_valid, "observedGeneration": 1, "role": role,
        "LastAppliedPipelineHash": 1, "addresses": addresses, "runBy": run_by,
    });
    pipeline
}

/// What the first shares with the others.
fn shared_by(pipelines: &[Value], runners: &[Value]) -> Value {
    let mut all = Neighbourhood::default();
    pipelines.iter().chain(runners).for_each(|it| all.see(it));
    all.shared(&pipelines[0])
}

/// Who has the address of the first.
fn blamed(pipelines: &[Value], runners: &[Value]) -> Option<String> {
    let shared = shared_by(pipelines, runners);
    let by = shared.pointer("/taken/0/by")?.as_str()?;
    Some(by.rsplit('/').next()?.to_owned())
}

const PORT: &str = "0.0.0.0:9000";
const TCP: &str = "tcp 0.0.0.0:9000";

#[test]
fn the_elder_keeps_an_address_and_who_holds_it_before() {
    let old = || pipeline("old", "1", PORT);
    let new = || pipeline("new", "2", PORT);
    let runners = anybody();
    let is = |name: &str| Some(name.to_owned());
    assert_eq!(blamed(&[new(), old()], &runners), is("old"));
    assert_eq!(blamed(&[old(), new()], &runners), None);
    // The elder is to listen where the younger one does.
    let all = &["VectorAggregator team/all"];
    let address = &[TCP];
    let runs = told(new(), true, address, all);
    assert_eq!(blamed(&[old(), runs.clone()], &runners), is("new"));
    assert_eq!(blamed(&[runs.clone(), old()], &runners), None);
    // Others have run it until now, or nobody has.
    for run_by in [&["VectorAggregator team/other"][..], &[]] {
        let elsewhere = told(old(), true, address, run_by);
        assert_eq!(blamed(&[runs.clone(), elsewhere.clone()], &runners), None);
        assert_eq!(blamed(&[elsewhere, runs.clone()], &runners), is("new"));
    }
    // Another runs the younger, and nobody the elder.
    let elsewhere = told(new(), true, address, &["VectorAggregator team/other"]);
    assert_eq!(blamed(&[old(), elsewhere.clone()], &runners), is("new"));
    assert_eq!(blamed(&[elsewhere, old()], &runners), None);
    // Both have been run by it, before it selected otherwise.
    let both = [runs, told(old(), true, address, all)];
    assert_eq!(blamed(&both, &runners), is("old"));
    // It waits for this address; for another; it is wrong by itself; it was, and has been changed since; it goes.
    let waits = told(old(), false, address, &[]);
    assert_eq!(blamed(&[new(), waits], &runners), is("old"));
    let waits = told(old(), false, &["tcp 0.0.0.0:9001"], &[]);
    assert_eq!(blamed(&[new(), waits], &runners), None);
    let faulty = told(old(), false, &[], &[]);
    assert_eq!(blamed(&[new(), faulty.clone()], &runners), None);
    assert_eq!(blamed(&[new(), edited(faulty, PORT)], &runners), is("old"));
    let mut going = old();
    going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
    assert_eq!(blamed(&[new(), going], &runners), None);
}

/// As its author has changed it since.
fn edited(mut pipeline: Value, address: &str) -> Value {
    pipeline["metadata"]["generation"] = 2.into();
    pipeline["spec"]["sources"]["in"]["address"] = address.into();
    pipeline
}

fn paused(mut pipeline: Value) -> Value {
    pipeline["metadata"]["annotations"] = json!({"lockstep.dev/paused": "true"});
    pipeline
}

#[test]
fn what_is_changed_goes_on_as_it_was_until_that_is_judged() {
    let runners = anybody();
    let is = |name: &str| Some(name.to_owned());
    // Its component is not known any more.
    let was = || is("young as it was");
    let runs = || {
        told(
            pipeline("young", "2", PORT),
            true,
            &[TCP],
            &["VectorAggregator team/all"],
        )
    };
    let moved = || edited(runs(), "0.0.0.0:9001");
    let elder = |address: &str| pipeline("old", "1", address);
    let younger = || pipeline("younger", "3", "0.0.0.0:9001");
    // Where it listens it goes on; where it will, it waits as others do.
    assert_eq!(blamed(&[elder(PORT), moved()], &runners), was());
    assert_eq!(blamed(&[elder("0.0.0.0:9001"), moved()], &runners), None);
    assert_eq!(blamed(&[younger(), moved()], &runners), is("young"));
    // It could not be judged.
    let mut unclear = moved();
    unclear["status"]["configCheckResult"] = false.into();
    unclear["status"]["observedGeneration"] = 2.into();
    unclear["status"]["LastAppliedPipelineHash"] = Value::Null;
    assert_eq!(blamed(&[elder(PORT), unclear.clone()], &runners), was());
    assert_eq!(blamed(&[younger(), unclear.clone()], &runners), None);
    unclear["status"]["runBy"] = Value::Null;
    assert_eq!(blamed(&[younger(), unclear.clone()], &runners), None);
    assert_eq!(
        blamed(&[pipeline("new", "3", PORT), unclear], &runners),
        None
    );
    // Nobody will.
    let left = paused(moved());
    assert_eq!(blamed(&[elder(PORT), left.clone()], &runners), was());
    assert_eq!(blamed(&[younger(), left], &runners), None);
    let left = paused(edited(runs(), PORT));
    assert_eq!(blamed(&[elder(PORT), left], &runners), is("young"));
    let new = || pipeline("new", "3", PORT);
    assert_eq!(blamed(&[new(), paused(elder(PORT))], &runners), None);
    let waits = told(elder(PORT), false, &[TCP], &[]);
    assert_eq!(blamed(&[new(), waits.clone()], &runners), is("old"));
    let elsewhere = edited(waits.clone(), "0.0.0.0:9001");
    assert_eq!(blamed(&[new(), elsewhere], &runners), None);
    assert_eq!(blamed(&[new(), paused(waits)], &runners), None);
    assert_eq!(blamed(&[new(), paused(runs())], &runners), is("young"));
}

#[test]
fn who_waits_with_one_is_in_nobodys_way_with_another() {
    let runners = ["a", "b"].map(|run| {
        let selector = json!({"matchLabels": {run: "yes"}});
        runner(run, &json!({"selector": selector}))
    });
    let run_by = |mut pipeline: Value, all: &[&str]| {
        let labels = all.iter().map(|run| ((*run).to_owned(), "yes".into()));
        pipeline["metadata"]["labels"] = Value::Object(labels.collect());
        pipeline
    };
    let both = |pipeline| run_by(pipeline, &["a", "b"]);
    let waits = |name: &str, age: &str| both(told(pipeline(name, age, PORT), false, &[TCP], &[]));
    let holds = |run: &str| {
        let holds = told(
            pipeline("holds", "3", PORT),
            true,
            &[TCP],
            &[&format!("VectorAggregator team/{run}")],
        );
        run_by(holds, &[run])
    };
    let new = |run: &str| run_by(pipeline("new", "2", PORT), &[run]);
    let next = |pipelines: &[Value]| blamed(pipelines, &runners);
    let is = |name: &str| Some(name.to_owned());
    let old = || waits("old", "1");
    assert_eq!(next(&[new("b"), old(), holds("a")]), None);
    assert_eq!(next(&[new("a"), old(), holds("a")]), is("holds"));
    // As soon as nobody holds it back it is next, with all who run it.
    assert_eq!(next(&[new("a"), old()]), is("old"));
    assert_eq!(next(&[new("b"), old()]), is("old"));
    let other = || waits("other", "2");
    assert_eq!(next(&[other(), old()]), is("old"));
    assert_eq!(next(&[old(), other()]), None);
    // Of those that wait it is only who could run: the elder with what the eldest leaves.
    assert_eq!(next(&[both(new("a")), other(), holds("a")]), is("holds"));
    let third = run_by(waits("third", "1"), &["b"]);
    assert_eq!(
        next(&[new("b"), third.clone(), old(), holds("a")]),
        is("third")
    );
    assert_eq!(next(&[third, old(), holds("a")]), None);
    // What is waited for beside it is held still, as far as is known here.
    let mut more = told(old(), false, &[TCP, "tcp 0.0.0.0:9001"], &[]);
    more["spec"]["sources"]["more"] = json!({"type": "vector", "address": "0.0.0.0:9001"});
    assert_eq!(next(&[new("a"), more]), None);
}

#[test]
fn who_waits_for_what_the_runner_needs_is_in_nobodys_way() {
    let agents = [json!({
        "kind": "Vector", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"agent": {"internalMetrics": true}},
    })];
    let address = "0.0.0.0:9598";
    let old = told(
        on_nodes("old", "1", address),
        false,
        &["tcp 0.0.0.0:9598"],
        &[],
    );
    let mut new = pipeline("new", "2", PORT);
    new["spec"]["sources"]["in"] = json!({"type": "kubernetes_logs"});
    let exporter = json!({"type": "prometheus_exporter", "address": address, "inputs": ["in"]});
    new["spec"]["sinks"]["out"] = exporter;
    assert_eq!(blamed(&[new.clone(), old.clone()], &agents), None);
    assert_eq!(
        blamed(&[new.clone(), on_nodes("old", "1", address)], &agents),
        None
    );
    // Who listens does, before that is judged again.
    let listens = told(
        on_nodes("old", "1", address),
        true,
        &["tcp 0.0.0.0:9598"],
        &["Vector n/a"],
    );
    assert_eq!(blamed(&[new, listens], &agents), Some("old".to_owned()));
}

#[test]
fn who_waits_for_what_one_runner_needs_is_not_next_with_another() {
    let selector = json!({"matchLabels": {"run": "a"}});
    let runners = [
        runner(
            "a",
            &json!({"api": {"enabled": true}, "selector": selector}),
        ),
        runner("b", &json!({})),
    ];
    let address = "0.0.0.0:8686";
    let old = pipeline("old", "1", address);
    let waits = told(old, false, &["tcp 0.0.0.0:8686"], &[]);
    let new = || pipeline("new", "2", address);
    let by = |waits| blamed(&[new(), waits], &runners);
    assert_eq!(by(labelled(waits.clone(), "a")), None);
    assert_eq!(by(waits), Some("old".to_owned()));
}

#[test]
fn what_is_run_otherwise_goes_on_as_it_was_until_that_is_judged() {
    let all = &["VectorAggregator team/all"];
    let runs = told(pipeline("young", "2", PORT), true, &[TCP], all);
    let mut moved = edited(runs, PORT);
    moved["spec"]["sources"]["in"] = json!({"type": "prometheus_remote_write", "address": PORT});
    let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "team"}})];
    let old = pipeline("old", "1", PORT);
    for moved in [moved.clone(), paused(moved.clone())] {
        let by = blamed(&[old.clone(), moved], &anybody());
        assert_eq!(by, Some("young as it was".to_owned()));
    }
    // It does not listen there yet.
    let elder = on_nodes("old", "1", PORT);
    assert_eq!(blamed(&[elder, moved.clone()], &agents), None);
    let younger = on_nodes("new", "3", PORT);
    assert_eq!(
        blamed(&[younger.clone(), moved.clone()], &agents),
        Some("young".to_owned())
    );
    assert_eq!(blamed(&[younger, paused(moved.clone())], &agents), None);
    // Nobody can run both of these.
    moved["spec"]["sources"]["other"] = json!({"type": "vector", "address": PORT});
    let by = blamed(&[old, moved], &anybody());
    assert_eq!(by, Some("young as it was".to_owned()));
}

#[test]
fn who_was_only_warned_that_it_could_not_be_judged_is_to_listen() {
    let mut old = told(pipeline("old", "1", PORT), true, &[], &[]);
    old["status"]["LastAppliedPipelineHash"] = Value::Null;
    let new = pipeline("new", "2", PORT);
    assert_eq!(blamed(&[new, old], &anybody()), Some("old".to_owned()));
}

#[test]
fn who_cannot_give_way_is_first_of_those_who_do_not_listen() {
    let old = || pipeline("old", "1", PORT);
    let left = paused(told(pipeline("young", "2", PORT), true, &[], &[]));
    assert_eq!(
        blamed(&[old(), left.clone()], &anybody()),
        Some("young".to_owned())
    );
    let runs = told(old(), true, &[TCP], &["VectorAggregator team/all"]);
    assert_eq!(blamed(&[runs, left], &anybody()), None);
}

#[test]
fn who_runs_a_pipeline_is_asked_again_when_its_labels_change() {
    let faulty = told(pipeline("a", "1", PORT), false, &[], &[]);
    let (before, claims) = told_of_pipeline(&faulty);
    let (after, others) = told_of_pipeline(&labelled(faulty.clone(), "it"));
    assert_ne!(claims, others);
    assert_eq!(before, after);
    assert!(
        before.iter().all(|key| keys(&faulty).contains(key)),
        "{before:?}"
    );
    let other = pipeline("b", "1", PORT);
    assert!(
        before.iter().all(|key| !keys(&other).contains(key)),
        "{before:?}"
    );
    assert_eq!(before.len(), 1);
    let mut nowhere = faulty;
    nowhere["spec"]["sources"]["in"] = json!({"type": "kafka"});
    assert!(told_of_pipeline(&nowhere).0.is_empty());
}

#[test]
fn what_a_policy_only_warned_of_is_not_held() {
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    let shared = shared_by(&pipelines, &anybody());
    assert_eq!(addresses(&pipelines[0], &shared, true), [TCP]);
    assert!(addresses(&pipelines[0], &shared, false).is_empty());
    let alone = shared_by(&pipelines[..1], &anybody());
    assert_eq!(addresses(&pipelines[0], &alone, false), [TCP]);
}

#[test]
fn who_is_run_by_more_than_a_status_tells_of_keeps_his_address() {
    let names: Vec<_> = (0..=64).map(|at| format!("r{at:03}")).collect();
    let runners: Vec<_> = names.iter().map(|name| runner(name, &json!({}))).collect();
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("VectorAggregator team/{name}"))
        .collect();
    let runs = pipeline("runs", "2", PORT);
    let shared = shared_by(std::slice::from_ref(&runs), &runners);
    assert_eq!(run_by(&shared), names[..64]);
    let run_by: Vec<_> = names[..64].iter().map(String::as_str).collect();
    let runs = told(runs, true, &[TCP], &run_by);
    let old = pipeline("old", "1", PORT);
    assert_eq!(
        blamed(&[old, runs], &runners[64..]),
        Some("runs".to_owned())
    );
}

#[test]
fn aggregators_have_each_port_once() {
    // The host would have both, but not what leads to the Pods.
    let pipelines = [
        pipeline("new", "2", "127.0.0.2:9000"),
        pipeline("old", "1", "127.0.0.1:9000"),
    ];
    assert_eq!(blamed(&pipelines, &anybody()), Some("old".to_owned()));
}

#[test]
fn one_pipeline_is_in_its_own_way_before_anybody_runs_it() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let mut pipeline = pipeline("a", "1", "0.0.0.0:9000");
    let mut said = |address: &str| {
        let another = json!({"type": "vector", "address": address});
        pipeline["spec"]["sources"]["other"] = another;
        pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in", "other"]);
        rules.check(&Candidate::create(&pipeline)).message()
    };
    assert_eq!(
        said("127.0.0.1:9000"),
        "spec.sources[other].address: Invalid value: \"127.0.0.1:9000\": tcp 127.0.0.1:9000 is not free where the source `in` listens on 0.0.0.0:9000; choose another port [addresses-apart]"
    );
    assert_eq!(said("127.0.0.1:9001"), "");
    // Once.
    let equal = said("0.0.0.0:9000");
    assert!(
        equal.contains("[events-flow]") && !equal.contains("[addresses-apart]"),
        "{equal}"
    );
}

#[test]
fn who_listens_everywhere_is_refused_and_compared_in_part() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let with = |count: u16| {
        let mut pipeline = pipeline("a", "1", PORT);
        for port in 0..count {
            let address = format!("127.0.0.1:{}", 10_000 + port);
            let source = json!({"type": "vector", "address": address});
            pipeline["spec"]["sources"][format!("s{port}")] = source;
        }
        pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in"]);
        pipeline
    };
    let (most, more) = (with(99), with(100));
    // Beside the key of itself.
    assert_eq!((keys(&most).len(), keys(&more).len()), (101, 101));
    let said = |pipeline| rules.check(&Candidate::create(pipeline)).message();
    assert_eq!(said(&most), "");
    let expected = "spec: Invalid value: listens on 101 addresses; at most 100 are compared with those of others [addresses-apart]";
    assert_eq!(said(&more), expected);
}

#[test]
fn only_who_is_run_by_the_same_vector_is_in_the_way() {
    let runners = ["a", "b"].map(|run| {
        let selector = json!({"matchLabels": {"run": run}});
        runner(run, &json!({"selector": selector}))
    });
    let old = labelled(pipeline("old", "1", PORT), "a");
    let new = || pipeline("new", "2", PORT);
    let by = |new, runners: &[Value]| blamed(&[new, old.clone()], runners);
    assert_eq!(by(labelled(new(), "a"), &runners), Some("old".to_owned()));
    assert_eq!(by(labelled(new(), "b"), &runners), None);
    assert_eq!(by(new(), &runners), None);
    assert_eq!(by(new(), &anybody()), Some("old".to_owned()));
    assert_eq!(by(labelled(new(), "a"), &[]), None);
    let mut elsewhere = anybody();
    elsewhere[0]["metadata"]["namespace"] = "other".into();
    assert_eq!(by(new(), &elsewhere), None);
    elsewhere[0]["kind"] = "Vector".into();
    assert_eq!(by(new(), &elsewhere), None, "agents do not run it");
    let mut going = anybody();
    going[0]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
    assert_eq!(by(new(), &going), None);
    // Who loses what it claims is in nobody's way.
    let third = labelled(pipeline("third", "3", PORT), "b");
    let both = json!({"matchLabels": {}});
    let second = labelled(pipeline("second", "2", PORT), "a");
    let runners = [
        runners.to_vec(),
        vec![runner("c", &json!({"selector": both}))],
    ]
    .concat();
    let all = [third, second, old.clone()];
    assert_eq!(blamed(&all, &runners), Some("old".to_owned()));
    assert_eq!(blamed(&all, &runners[..2]), None);
}

#[test]
fn addresses_that_stand_for_all_take_every_other_with_the_port() {
    let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
    for (one, another, is_taken) in [
        ("0.0.0.0:9000", "0.0.0.0:9000", true),
        ("0.0.0.0:9000", "127.0.0.1:9000", true),
        ("[::]:9000", "127.0.0.1:9000", true),
        ("[::]:9000", "0.0.0.0:9000", true),
        ("0.0.0.0:9000", "[::1]:9000", false),
        ("[::ffff:127.0.0.1]:9000", "127.0.0.1:9000", true),
        ("127.0.0.2:9000", "127.0.0.1:9000", false),
        ("0.0.0.0:9000", "0.0.0.0:9001", false),
        ("[::1]:9000", "[::]:9000", true),
        ("[::1]:9000", "127.0.0.1:9000", false),
        // Vector compares what is written, whatever the host makes of it.
        ("0.0.0.0:0", "0.0.0.0:0", true),
        ("0.0.0.0:0", "127.0.0.1:0", false),
        ("127.0.0.1:0", "[::ffff:127.0.0.1]:0", false),
        ("systemd", "systemd#1", true),
        ("systemd", "systemd#2", false),
    ] {
        for (one, another) in [(one, another), (another, one)] {
            let pipelines = [on_nodes("new", "2", one), on_nodes("old", "1", another)];
            let by = blamed(&pipelines, &agents);
            assert_eq!(by.is_some(), is_taken, "{one} and {another}");
            let [one_key, another_key] = [0, 1].map(|at| keys(&pipelines[at]));
            let shares = one_key.iter().any(|key| another_key.contains(key));
            assert!(shares || !is_taken, "{one} and {another} are not found");
        }
    }
    let mut udp = pipeline("new", "2", PORT);
    udp["spec"]["sources"]["in"] = json!({"type": "socket", "mode": "udp", "address": PORT});
    let pipelines = [udp, pipeline("old", "1", PORT)];
    assert_eq!(blamed(&pipelines, &anybody()), None);
}

#[test]
fn the_api_of_who_runs_it_has_its_port() {
    let runners = [runner("r", &json!({"api": {"enabled": true}}))];
    let shared = shared_by(&[pipeline("new", "2", "0.0.0.0:8686")], &runners);
    assert_eq!(shared["taken"][0]["by"], "Vector's own API");
    assert_eq!(shared["taken"][0]["runner"], "VectorAggregator team/r");
    let shared = shared_by(&[pipeline("new", "2", "0.0.0.0:8687")], &runners);
    assert_eq!(shared["taken"], json!([]));
}

#[test]
fn the_metrics_of_who_runs_it_have_theirs_unless_it_serves_them() {
    let spec = json!({"agent": {"internalMetrics": true}});
    let agents =
        [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}, "spec": spec})];
    let mut pipeline = on_nodes("new", "2", "127.0.0.1:9598");
    let shared = shared_by(&[pipeline.clone()], &agents);
    assert_eq!(shared["taken"][0]["by"], "Vector's own metrics");
    pipeline["spec"]["sources"]["in"] = json!({"type": "kubernetes_logs"});
    pipeline["spec"]["sinks"]["out"] = json!({"type": "prometheus_exporter", "inputs": ["in"]});
    assert_eq!(shared_by(&[pipeline], &agents)["taken"], json!([]));
}

#[test]
fn events_of_kubernetes_are_sent_to_the_address_that_is_told() {
    let events = |name: &str, created: &str, mode: &str| {
        let mut pipeline = pipeline(name, created, PORT);
        pipeline["spec"]["sources"]["in"] =
            json!({"type": "kubernetes_events", "address": PORT, "mode": mode});
        pipeline
    };
    let old = pipeline("old", "1", PORT);
    let by = |mode| blamed(&[events("new", "2", mode), old.clone()], &anybody());
    assert_eq!(by("tcp"), Some("old".to_owned()));
    assert_eq!(by("udp"), None);
}

#[test]
fn a_tenant_is_told_of_no_pipeline_that_is_not_in_his_namespace() {
    let mut old = on_nodes("old", "1", PORT);
    old["metadata"]["namespace"] = "other".into();
    let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
    let mut new = on_nodes("new", "2", PORT);
    let taken = |new: &Value| shared_by(&[new.clone(), old.clone()], &agents)["taken"].clone();
    assert_eq!(
        taken(&new)[0]["by"],
        "a pipeline that is not of this namespace"
    );
    assert_eq!(taken(&new)[0]["runner"], "Vector n/a");
    new["metadata"]["namespace"] = Value::Null;
    assert_eq!(
        taken(&new)[0]["by"],
        "the source `in` of VectorPipeline other/old"
    );
    assert_eq!(taken(&new)[0]["runner"], "Vector n/a");
}

#[test]
fn the_rule_names_the_field_and_who_has_the_address() {
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    // Of those who run both, the first.
    let both = [
        anybody(),
        vec![runner("another", &json!({})), runner("less", &json!({}))],
    ]
    .concat();
    let shared = shared_by(&pipelines, &both);
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let candidate = Candidate::create(&pipelines[0]);
    assert!(rules.check(&candidate).is_valid(), "by itself");
    let verdict = rules.check(&candidate.among(&shared));
    let expected = "spec.sources[in].address: Invalid value: \"0.0.0.0:9000\": tcp 0.0.0.0:9000 is taken by the source `in` of VectorPipeline team/old, and VectorAggregator team/all runs both; listen on another port, or have another run it by the labels that it selects [address-free]";
    assert_eq!(verdict.message(), expected);
    assert!(verdict.inherited.is_empty());
    // What stands is not inherited: others have come.
    let candidate = Candidate::update(&pipelines[0], &pipelines[0]);
    assert!(!rules.check(&candidate.among(&shared)).is_valid());
}

#[test]
fn what_a_policy_only_warned_of_is_not_inherited() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let known = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let known = Rulesets::default().with(Arc::new(known));
    let policy = |action: &str| {
        let rules = json!({"VectorPipeline": {ADDRESS_FREE: action}});
        Policy::read(&json!({"rules": rules}), &known).expect("a policy")
    };
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    let shared = shared_by(&pipelines, &anybody());
    let new = &pipelines[0];
    let (warns, denies) = (policy("warn"), policy("deny"));
    let warned = rules.check(&Candidate::create(new).under(&warns).among(&shared));
    assert!(warned.is_valid() && !warned.warnings.is_empty());
    let accepted = Accepted::of(&warned.object, rules.transition_fields());
    let accepted = accepted.in_spite_of(&warned.inherited);
    let candidate = Candidate::update(new, new).since(Some(&accepted));
    let verdict = rules.check(&candidate.under(&denies).among(&shared));
    assert!(
        verdict.message().ends_with("[address-free]"),
        "{}",
        verdict.message()
    );
}
