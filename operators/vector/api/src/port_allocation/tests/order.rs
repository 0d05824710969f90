//! Precedence of pipelines.

use crate::port_allocation::tests::*;

#[test]
fn the_holder_keeps_an_address_and_otherwise_the_oldest_gets_it() {
    let old = || pipeline("old", "1", PORT);
    let new = || pipeline("new", "2", PORT);
    let workloads = any_workload();
    let is = |name: &str| Some(name.to_owned());
    assert_eq!(holder(&[new(), old()], &workloads), is("old"));
    assert_eq!(holder(&[old(), new()], &workloads), None);
    // The younger one already listens where the older one would.
    let all = &["VectorAggregator team/all"];
    let address = &[TCP];
    let runs = with_status(new(), true, address, all);
    assert_eq!(holder(&[old(), runs.clone()], &workloads), is("new"));
    assert_eq!(holder(&[runs.clone(), old()], &workloads), None);
    // Until now, another workload or no workload ran it.
    for run_by in [&["VectorAggregator team/other"][..], &[]] {
        let elsewhere = with_status(old(), true, address, run_by);
        assert_eq!(holder(&[runs.clone(), elsewhere.clone()], &workloads), None);
        assert_eq!(holder(&[elsewhere, runs.clone()], &workloads), is("new"));
    }
    // Another workload runs the younger one, and none runs the older one.
    let elsewhere = with_status(new(), true, address, &["VectorAggregator team/other"]);
    assert_eq!(holder(&[old(), elsewhere.clone()], &workloads), is("new"));
    assert_eq!(holder(&[elsewhere, old()], &workloads), None);
    // The workload ran both before its selector changed.
    let both = [runs, with_status(old(), true, address, all)];
    assert_eq!(holder(&both, &workloads), is("old"));
    // It waits for this address; for another one; it is invalid for another reason; it was, and was changed after that;
    // it is being deleted.
    let waits = with_status(old(), false, address, &[]);
    assert_eq!(holder(&[new(), waits], &workloads), is("old"));
    let waits = with_status(old(), false, &["tcp 0.0.0.0:9001"], &[]);
    assert_eq!(holder(&[new(), waits], &workloads), None);
    let faulty = with_status(old(), false, &[], &[]);
    assert_eq!(holder(&[new(), faulty.clone()], &workloads), None);
    assert_eq!(
        holder(&[new(), edited(faulty, PORT)], &workloads),
        is("old")
    );
    let mut going = old();
    going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
    assert_eq!(holder(&[new(), going], &workloads), None);
}

#[test]
fn a_changed_pipeline_keeps_its_addresses_until_the_change_is_validated() {
    let workloads = any_workload();
    let is = |name: &str| Some(name.to_owned());
    // Its component is no longer known.
    let was = || is("young (previous version)");
    let runs = || {
        with_status(
            pipeline("young", "2", PORT),
            true,
            &[TCP],
            &["VectorAggregator team/all"],
        )
    };
    let moved = || edited(runs(), "0.0.0.0:9001");
    let older = |address: &str| pipeline("old", "1", address);
    let newer = || pipeline("younger", "3", "0.0.0.0:9001");
    // It keeps its present address, and waits for the new one like the others.
    assert_eq!(holder(&[older(PORT), moved()], &workloads), was());
    assert_eq!(holder(&[older("0.0.0.0:9001"), moved()], &workloads), None);
    assert_eq!(holder(&[newer(), moved()], &workloads), is("young"));
    // It could not be validated.
    let mut unclear = moved();
    unclear["status"]["configCheckResult"] = false.into();
    unclear["status"]["observedGeneration"] = 2.into();
    unclear["status"]["LastAppliedPipelineHash"] = Value::Null;
    assert_eq!(holder(&[older(PORT), unclear.clone()], &workloads), was());
    assert_eq!(holder(&[newer(), unclear.clone()], &workloads), None);
    unclear["status"]["runBy"] = Value::Null;
    assert_eq!(holder(&[newer(), unclear.clone()], &workloads), None);
    assert_eq!(
        holder(&[pipeline("new", "3", PORT), unclear], &workloads),
        None
    );
    // It is paused and will not be validated.
    let left = paused(moved());
    assert_eq!(holder(&[older(PORT), left.clone()], &workloads), was());
    assert_eq!(holder(&[newer(), left], &workloads), None);
    let left = paused(edited(runs(), PORT));
    assert_eq!(holder(&[older(PORT), left], &workloads), is("young"));
    let new = || pipeline("new", "3", PORT);
    assert_eq!(holder(&[new(), paused(older(PORT))], &workloads), None);
    let waits = with_status(older(PORT), false, &[TCP], &[]);
    assert_eq!(holder(&[new(), waits.clone()], &workloads), is("old"));
    let elsewhere = edited(waits.clone(), "0.0.0.0:9001");
    assert_eq!(holder(&[new(), elsewhere], &workloads), None);
    assert_eq!(holder(&[new(), paused(waits)], &workloads), None);
    assert_eq!(holder(&[new(), paused(runs())], &workloads), is("young"));
}

#[test]
fn a_pipeline_that_waits_in_one_workload_holds_nothing_in_another() {
    let workloads = ["a", "b"].map(|run| {
        let selector = json!({"matchLabels": {run: "yes"}});
        workload(run, &json!({"selector": selector}))
    });
    let run_by = |mut pipeline: Value, all: &[&str]| {
        let labels = all.iter().map(|run| ((*run).to_owned(), "yes".into()));
        pipeline["metadata"]["labels"] = Value::Object(labels.collect());
        pipeline
    };
    let both = |pipeline| run_by(pipeline, &["a", "b"]);
    let waits =
        |name: &str, age: &str| both(with_status(pipeline(name, age, PORT), false, &[TCP], &[]));
    let holds = |run: &str| {
        let holds = with_status(
            pipeline("holds", "3", PORT),
            true,
            &[TCP],
            &[&format!("VectorAggregator team/{run}")],
        );
        run_by(holds, &[run])
    };
    let new = |run: &str| run_by(pipeline("new", "2", PORT), &[run]);
    let next = |pipelines: &[Value]| holder(pipelines, &workloads);
    let is = |name: &str| Some(name.to_owned());
    let old = || waits("old", "1");
    assert_eq!(next(&[new("b"), old(), holds("a")]), None);
    assert_eq!(next(&[new("a"), old(), holds("a")]), is("holds"));
    // As soon as nothing blocks it, it is next in all its workloads.
    assert_eq!(next(&[new("a"), old()]), is("old"));
    assert_eq!(next(&[new("b"), old()]), is("old"));
    let other = || waits("other", "2");
    assert_eq!(next(&[other(), old()]), is("old"));
    assert_eq!(next(&[old(), other()]), None);
    // Of the waiting pipelines, only those that could run count: the older one, with the addresses that the oldest
    // leaves.
    assert_eq!(next(&[both(new("a")), other(), holds("a")]), is("holds"));
    let third = run_by(waits("third", "1"), &["b"]);
    assert_eq!(
        next(&[new("b"), third.clone(), old(), holds("a")]),
        is("third")
    );
    assert_eq!(next(&[third, old(), holds("a")]), None);
    // The other addresses that it waits for count as still in use.
    let mut more = with_status(old(), false, &[TCP, "tcp 0.0.0.0:9001"], &[]);
    more["spec"]["sources"]["more"] = json!({"type": "vector", "address": "0.0.0.0:9001"});
    assert_eq!(next(&[new("a"), more]), None);
}

#[test]
fn a_pipeline_that_waits_for_an_address_of_the_workload_blocks_no_other() {
    let agents = [json!({
        "kind": "Vector", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"agent": {"internalMetrics": true}},
    })];
    let address = "0.0.0.0:9598";
    let old = with_status(
        on_nodes("old", "1", address),
        false,
        &["tcp 0.0.0.0:9598"],
        &[],
    );
    let mut new = pipeline("new", "2", PORT);
    new["spec"]["sources"]["in"] = json!({"type": "kubernetes_logs"});
    let exporter = json!({"type": "prometheus_exporter", "address": address, "inputs": ["in"]});
    new["spec"]["sinks"]["out"] = exporter;
    // A tenant that waits for the metrics of the agents does not keep an administrator from replacing them.
    let mut waits = new.clone();
    waits["metadata"]["name"] = "waits".into();
    waits["metadata"]["uid"] = "waits".into();
    let waits = with_status(waits, false, &["tcp 0.0.0.0:9598"], &[]);
    let new = of_administrator(new);
    assert_eq!(holder(&[new.clone(), waits], &agents), None);
    assert_eq!(holder(&[new.clone(), old.clone()], &agents), None);
    assert_eq!(
        holder(&[new.clone(), on_nodes("old", "1", address)], &agents),
        None
    );
    // A pipeline that already listens counts until it is validated again.
    let listens = with_status(
        on_nodes("old", "1", address),
        true,
        &["tcp 0.0.0.0:9598"],
        &["Vector n/a"],
    );
    assert_eq!(holder(&[new, listens], &agents), Some("old".to_owned()));
}

#[test]
fn a_pipeline_that_waits_for_an_address_of_one_workload_is_not_next_in_another() {
    let selector = json!({"matchLabels": {"run": "a"}});
    let workloads = [
        workload(
            "a",
            &json!({"api": {"enabled": true}, "selector": selector}),
        ),
        workload("b", &json!({})),
    ];
    let address = "0.0.0.0:8686";
    let old = pipeline("old", "1", address);
    let waits = with_status(old, false, &["tcp 0.0.0.0:8686"], &[]);
    let new = || pipeline("new", "2", address);
    let by = |waits| holder(&[new(), waits], &workloads);
    assert_eq!(by(labelled(waits.clone(), "a")), None);
    assert_eq!(by(waits), Some("old".to_owned()));
}

#[test]
fn a_pipeline_with_a_new_role_keeps_its_addresses_until_the_change_is_validated() {
    let all = &["VectorAggregator team/all"];
    let runs = with_status(pipeline("young", "2", PORT), true, &[TCP], all);
    let mut moved = edited(runs, PORT);
    moved["spec"]["sources"]["in"] = json!({"type": "prometheus_remote_write", "address": PORT});
    let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "team"}})];
    let old = pipeline("old", "1", PORT);
    for moved in [moved.clone(), paused(moved.clone())] {
        let by = holder(&[old.clone(), moved], &any_workload());
        assert_eq!(by, Some("young (previous version)".to_owned()));
    }
    // It does not listen there yet.
    let older = on_nodes("old", "1", PORT);
    assert_eq!(holder(&[older, moved.clone()], &agents), None);
    let newer = on_nodes("new", "3", PORT);
    assert_eq!(
        holder(&[newer.clone(), moved.clone()], &agents),
        Some("young".to_owned())
    );
    assert_eq!(holder(&[newer, paused(moved.clone())], &agents), None);
    // Aggregators run it, if a policy accepts sources of both roles.
    moved["spec"]["sources"]["other"] = json!({"type": "vector", "address": PORT});
    let by = holder(&[old.clone(), moved.clone()], &any_workload());
    assert_eq!(by, Some("young".to_owned()));
    // No role runs the source.
    moved["spec"]["sources"]["other"] = json!({"type": "stdin"});
    let by = holder(&[old, moved], &any_workload());
    assert_eq!(by, Some("young (previous version)".to_owned()));
}

#[test]
fn a_pipeline_with_only_a_warning_about_an_incomplete_validation_listens() {
    let mut old = with_status(pipeline("old", "1", PORT), true, &[], &[]);
    old["status"]["LastAppliedPipelineHash"] = Value::Null;
    let new = pipeline("new", "2", PORT);
    assert_eq!(holder(&[new, old], &any_workload()), Some("old".to_owned()));
}

#[test]
fn a_paused_pipeline_is_first_of_those_that_do_not_listen() {
    let old = || pipeline("old", "1", PORT);
    let left = paused(with_status(pipeline("young", "2", PORT), true, &[], &[]));
    assert_eq!(
        holder(&[old(), left.clone()], &any_workload()),
        Some("young".to_owned())
    );
    let runs = with_status(old(), true, &[TCP], &["VectorAggregator team/all"]);
    assert_eq!(holder(&[runs, left], &any_workload()), None);
}

#[test]
fn a_pipeline_with_more_workloads_than_its_status_lists_keeps_its_address() {
    let names: Vec<_> = (0..=64).map(|at| format!("r{at:03}")).collect();
    let workloads: Vec<_> = names
        .iter()
        .map(|name| workload(name, &json!({})))
        .collect();
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("VectorAggregator team/{name}"))
        .collect();
    let runs = pipeline("runs", "2", PORT);
    let shared = shared_by(std::slice::from_ref(&runs), &workloads);
    assert_eq!(run_by(&shared), names[..64]);
    let run_by: Vec<_> = names[..64].iter().map(String::as_str).collect();
    let runs = with_status(runs, true, &[TCP], &run_by);
    let old = pipeline("old", "1", PORT);
    assert_eq!(
        holder(&[old, runs], &workloads[64..]),
        Some("runs".to_owned())
    );
}

#[test]
fn only_pipelines_of_the_same_workload_conflict() {
    let workloads = ["a", "b"].map(|run| {
        let selector = json!({"matchLabels": {"run": run}});
        workload(run, &json!({"selector": selector}))
    });
    let old = labelled(pipeline("old", "1", PORT), "a");
    let new = || pipeline("new", "2", PORT);
    let by = |new, workloads: &[Value]| holder(&[new, old.clone()], workloads);
    assert_eq!(by(labelled(new(), "a"), &workloads), Some("old".to_owned()));
    assert_eq!(by(labelled(new(), "b"), &workloads), None);
    assert_eq!(by(new(), &workloads), None);
    assert_eq!(by(new(), &any_workload()), Some("old".to_owned()));
    assert_eq!(by(labelled(new(), "a"), &[]), None);
    let mut elsewhere = any_workload();
    elsewhere[0]["metadata"]["namespace"] = "other".into();
    assert_eq!(by(new(), &elsewhere), None);
    elsewhere[0]["kind"] = "Vector".into();
    assert_eq!(by(new(), &elsewhere), None, "agents do not run it");
    let mut going = any_workload();
    going[0]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
    assert_eq!(by(new(), &going), None);
    // A pipeline that lost its claim blocks no other.
    let third = labelled(pipeline("third", "3", PORT), "b");
    let both = json!({"matchLabels": {}});
    let second = labelled(pipeline("second", "2", PORT), "a");
    let workloads = [
        workloads.to_vec(),
        vec![workload("c", &json!({"selector": both}))],
    ]
    .concat();
    let all = [third, second, old.clone()];
    assert_eq!(holder(&all, &workloads), Some("old".to_owned()));
    assert_eq!(holder(&all, &workloads[..2]), None);
}

#[test]
fn a_pipeline_that_another_operator_found_invalid_blocks_no_other() {
    let by = |is_valid| {
        let mut old = pipeline("old", "1", PORT);
        old["status"] = json!({"configCheckResult": is_valid, "LastAppliedPipelineHash": 1});
        holder(&[pipeline("new", "2", PORT), old], &any_workload())
    };
    assert_eq!(by(false), None);
    assert_eq!(by(true), Some("old".to_owned()));
}
