//! Messages for authors, and index entries for other pipelines.

use crate::port_allocation::tests::*;

#[test]
fn a_change_of_labels_changes_the_index_entry_of_only_this_pipeline() {
    let faulty = with_status(pipeline("a", "1", PORT), false, &[], &[]);
    let (before, claims) = index_pipeline(&faulty);
    let (after, others) = index_pipeline(&labelled(faulty.clone(), "it"));
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
    assert_eq!(
        index_pipeline(&nowhere).0.len(),
        1,
        "its workloads may have another release"
    );
}

#[test]
fn a_pipeline_does_not_hold_addresses_of_others_if_the_policy_only_warns() {
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    let shared = shared_by(&pipelines, &any_workload());
    assert_eq!(addresses(&pipelines[0], &shared, true), [TCP]);
    assert!(addresses(&pipelines[0], &shared, false).is_empty());
    let alone = shared_by(&pipelines[..1], &any_workload());
    assert_eq!(addresses(&pipelines[0], &alone, false), [TCP]);
}

#[test]
fn a_message_for_a_tenant_names_no_pipeline_outside_the_namespace() {
    let mut old = on_nodes("old", "1", PORT);
    old["metadata"]["namespace"] = "other".into();
    let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
    let mut new = on_nodes("new", "2", PORT);
    let taken = |new: &Value| shared_by(&[new.clone(), old.clone()], &agents)["taken"].clone();
    assert_eq!(taken(&new)[0]["by"], "a pipeline outside this namespace");
    assert_eq!(taken(&new)[0]["workload"], "Vector n/a");
    new["metadata"]["namespace"] = Value::Null;
    assert_eq!(
        taken(&new)[0]["by"],
        "the source `in` of VectorPipeline other/old"
    );
    assert_eq!(taken(&new)[0]["workload"], "Vector n/a");
}

#[test]
fn the_rule_names_the_field_and_the_holder_of_the_address() {
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    // The message names the first of the common workloads.
    let both = [
        any_workload(),
        vec![
            workload("another", &json!({})),
            workload("less", &json!({})),
        ],
    ]
    .concat();
    let shared = shared_by(&pipelines, &both);
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let request = ValidationRequest::create(&pipelines[0]);
    assert!(rules.validate(&request).is_valid(), "without others");
    let result = rules.validate(&request.with_related(&shared));
    let expected = "spec.sources[in].address: Invalid value: \"0.0.0.0:9000\": tcp 0.0.0.0:9000 is already used by the source `in` of VectorPipeline team/old in the Pods of VectorAggregator team/all; use another port, or change the labels of the pipeline so that another Vector runs it [listen-address-conflict]";
    assert_eq!(result.message(), expected);
    assert!(result.ratcheted.is_empty());
    // A conflict of an unchanged pipeline is not ratcheted: other pipelines caused it.
    let request = ValidationRequest::update(&pipelines[0], &pipelines[0]);
    assert!(!rules.validate(&request.with_related(&shared)).is_valid());
}

#[test]
fn a_conflict_that_was_only_a_warning_is_not_ratcheted() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let known = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let known = ValidatorRegistry::default().register(Arc::new(known));
    let policy = |action: &str| {
        let rules = json!({"VectorPipeline": {ADDRESS_FREE: action}});
        Policy::read(&json!({"rules": rules}), &known).expect("a policy")
    };
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    let shared = shared_by(&pipelines, &any_workload());
    let new = &pipelines[0];
    let (warns, denies) = (policy("warn"), policy("deny"));
    let warned = rules.validate(
        &ValidationRequest::create(new)
            .with_policy(&warns)
            .with_related(&shared),
    );
    assert!(warned.is_valid() && !warned.warnings.is_empty());
    let last_validated = LastValidated::from_object(&warned.object, rules.transition_fields());
    let last_validated = last_validated.with_ratcheted(&warned.ratcheted);
    let request = ValidationRequest::update(new, new).with_last_validated(Some(&last_validated));
    let result = rules.validate(&request.with_policy(&denies).with_related(&shared));
    assert!(
        result.message().ends_with("[listen-address-conflict]"),
        "{}",
        result.message()
    );
}

#[test]
fn a_pipeline_is_warned_about_each_workload_with_another_release_that_runs_it() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let warnings = |pipeline: &Value, workloads: &[Value]| -> Vec<String> {
        let shared = shared_by(std::slice::from_ref(pipeline), workloads);
        let request = ValidationRequest::create(pipeline);
        let result = rules.validate(&request.with_related(&shared));
        assert!(result.is_valid(), "{}", result.message());
        let warnings = result.warnings.iter().map(|it| it.error.to_string());
        warnings.collect()
    };
    let image = |tag: &str| json!({"image": format!("timberio/vector:{tag}")});
    let aggregated = pipeline("a", "1", PORT);
    let workloads = [
        workload("new", &image("0.57.3-alpine")),
        workload("old", &image("0.48.0-alpine")),
        workload("latest", &image("latest")),
        workload("unset", &json!({})),
    ];
    let expected = [
        "spec: is validated for Vector 0.57 (VRL 0.35.0), but VectorAggregator team/old runs it with Vector 0.48, which may reject it; use an image of Vector 0.57 there, or add a catalogue of Vector 0.48 [vector-version]",
        "spec: is validated for Vector 0.57 (VRL 0.35.0), but the image of VectorAggregator team/latest, which runs it, has no tag that names a release of Vector [vector-version]",
    ];
    assert_eq!(warnings(&aggregated, &workloads), expected);
    // A workload that does not select the pipeline does not matter.
    let mut elsewhere = image("0.48.0");
    elsewhere["selector"] = json!({"matchLabels": {"run": "elsewhere"}});
    assert!(warnings(&aggregated, &[workload("old", &elsewhere)]).is_empty());
    // Pipelines that listen nowhere are warned as well.
    let mut collected = aggregated;
    collected["spec"]["sources"]["in"] = json!({"type": "kubernetes_logs"});
    let agent = |image: &Value| json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}, "spec": {"agent": image}});
    let old = warnings(&collected, &[agent(&image("0.48.0"))]);
    assert!(
        old[0].contains("Vector n/a runs it with Vector 0.48"),
        "{old:?}"
    );
    assert!(warnings(&collected, &[agent(&image("0.57.0"))]).is_empty());
    // Nothing is related, so that the fingerprint stays the same.
    let unset = [agent(&json!({}))];
    assert_eq!(shared_by(&[collected], &unset)["releases"], Value::Null);
}

#[test]
fn a_workload_that_runs_nothing_without_the_mark_of_its_namespace_makes_no_pipelines_compete() {
    let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
    let mut waiting = workload("all", &json!({}));
    let reason = workload_namespace::NAMESPACE_NOT_MARKED;
    let stalled = json!({"type": "Stalled", "status": "True", "reason": reason});
    waiting["status"] = json!({"conditions": [stalled]});
    let shared = shared_by(&pipelines, std::slice::from_ref(&waiting));
    assert_eq!(run_by(&shared), [""; 0]);
    assert_eq!(holder(&pipelines, std::slice::from_ref(&waiting)), None);
    // One that ran before the mark was removed runs on.
    waiting["status"]["publishedConfigHash"] = "hash".into();
    assert_eq!(holder(&pipelines, &[waiting]).as_deref(), Some("old"));
}
