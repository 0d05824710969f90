//! Tests of the validation for the versions of Vector that run a pipeline.

use std::sync::Arc;

use lockstep_shared_validation::{
    Policy, Ruleset, ValidationRequest, ValidationResult, Validator, ValidatorRegistry,
};
use lockstep_vector_config::{Catalogue, VectorVersion, VrlEnvironment};
use lockstep_vector_vrl::InProcessCompiler;
use serde_json::{Value, json};

use crate::catalogues::Catalogues;
use crate::rules::context::VectorContext;
use crate::types::agent::Vector;
use crate::types::pipeline::VectorPipeline;
use crate::workload_release::{self, always_interpolates};

/// Returns the rules with a catalogue of Vector 0.48, in which the console sink is called `terminal`.
fn context() -> Arc<VectorContext> {
    let shipped = include_str!("../../../config/catalogue/0.57.json");
    let old = shipped
        .replacen(r#""version":"0.57""#, r#""version":"0.48""#, 1)
        .replacen("\n\"console\":", "\n\"terminal\":", 1);
    let old = Catalogue::load(&old).expect("a catalogue");
    let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
    Arc::new(VectorContext::new(environment, Catalogues::with(&[old])))
}

fn rules() -> Ruleset<VectorPipeline> {
    let rules = Ruleset::compile().expect("it compiles");
    rules.with_extension(context())
}

fn pipeline(sink: &str) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {"name": "a", "namespace": "team"},
        "spec": {
            "sources": {"in": {"type": "kubernetes_logs"}},
            "sinks": {"out": {"type": sink, "inputs": ["in"], "encoding": {"codec": "json"}}},
        },
    })
}

/// Returns what a pipeline shares with others, with the releases of the workloads that run it.
fn run_by(releases: &[&str]) -> Value {
    let releases = releases.iter().map(|release| {
        let release = match *release {
            "unset" | "unknown" => json!(release),
            version => json!({"named": version}),
        };
        let is_old = release["named"]
            .as_str()
            .is_some_and(|version| version < "0.57");
        json!({"workload": "Vector n/a", "release": release, "replaces_variables": is_old})
    });
    json!({"run_by": [], "taken": [], "releases": releases.collect::<Vec<_>>()})
}

fn texts(result: &ValidationResult) -> [Vec<String>; 2] {
    [&result.errors, &result.warnings]
        .map(|list| list.iter().map(|it| it.error.to_string()).collect())
}

#[test]
fn a_pipeline_is_validated_for_the_releases_of_the_workloads_that_run_it() {
    let rules = rules();
    let validated = |sink: &str, releases: &[&str]| {
        let (object, shared) = (pipeline(sink), run_by(releases));
        let request = ValidationRequest::create(&object).with_related(&shared);
        let [errors, warnings] = texts(&rules.validate(&request));
        assert!(warnings.is_empty(), "{warnings:?}");
        errors
    };
    let none: [&str; 0] = [];
    for releases in [&[][..], &["0.57"], &["unset"]] {
        assert_eq!(validated("console", releases), none, "{releases:?}");
        let errors = validated("terminal", releases);
        assert!(
            errors[0].contains("Vector 0.57 has no such sink"),
            "{errors:?}"
        );
    }
    assert_eq!(validated("terminal", &["0.48"]), none);
    let old = validated("console", &["0.48"]);
    assert!(old[0].contains("Vector 0.48 has no such sink"), "{old:?}");
    // Each of two versions reports its own problems.
    for releases in [["0.57", "0.48"], ["unset", "0.48"]] {
        let new = validated("terminal", &releases);
        assert!(new[0].contains("Vector 0.57 has no such sink"), "{new:?}");
        let old = validated("console", &releases);
        assert!(old[0].contains("Vector 0.48 has no such sink"), "{old:?}");
        assert_eq!((new.len(), old.len()), (1, 1));
        assert_eq!(validated("neither", &releases).len(), 2);
    }
    // A problem with both is reported once.
    let (mut object, shared) = (pipeline("blackhole"), run_by(&["0.57", "0.48"]));
    object["spec"]["sinks"]["out"] = json!({"type": "blackhole", "inputs": ["on"]});
    let request = ValidationRequest::create(&object).with_related(&shared);
    let [errors, _] = texts(&rules.validate(&request));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(!errors[0].contains("Vector"), "{errors:?}");
}

#[test]
fn an_error_with_the_version_of_a_workload_is_one_of_related_objects() {
    let (object, shared) = (pipeline("console"), run_by(&["0.48"]));
    let request = ValidationRequest::create(&object).with_related(&shared);
    let errors = rules().validate(&request).errors;
    assert!(errors.iter().all(|error| error.is_of_related), "{errors:?}");
    let (object, shared) = (pipeline("neither"), run_by(&["0.57"]));
    let request = ValidationRequest::create(&object).with_related(&shared);
    let errors = rules().validate(&request).errors;
    assert!(!errors.is_empty());
    assert!(
        errors.iter().all(|error| !error.is_of_related),
        "{errors:?}"
    );
}

#[test]
fn versions_before_0_57_replace_variables_of_tenants() {
    let rules = rules();
    let mut object = pipeline("blackhole");
    object["spec"]["sources"]["in"]["glob_minimum_cooldown_ms"] = json!(1);
    object["spec"]["sinks"]["out"] = json!({
        "type": "http", "inputs": ["in"], "uri": "http://example.com", "encoding": {"codec": "json"},
        "request": {"headers": {"X": "${AWS_SECRET_ACCESS_KEY}"}},
    });
    for (releases, is_denied) in [(&["0.48"][..], true), (&["0.40"], true), (&["0.57"], false)] {
        let shared = run_by(releases);
        let request = ValidationRequest::create(&object).with_related(&shared);
        let [errors, warnings] = texts(&rules.validate(&request));
        assert_eq!(
            errors.iter().any(|it| it.contains("[tenant-environment]")),
            is_denied,
            "{errors:?}"
        );
        let is_literal = warnings.iter().any(|it| it.contains("[literal-variables]"));
        assert_eq!(is_literal, !is_denied, "{warnings:?}");
    }
}

#[test]
fn a_workload_whose_tag_and_version_contradict_each_other_may_replace_variables() {
    let replaced = |image: &str, version: &str| {
        workload_release::replaces_variables(
            &json!({"spec": {"image": image, "vectorVersion": version}}),
        )
    };
    assert!(replaced("timberio/vector:0.48.0-alpine", "0.57"));
    assert!(replaced("timberio/vector:0.57.0-alpine", "0.48"));
    assert!(replaced("mirror/vector:stable", "0.48"));
    assert!(!replaced("mirror/vector:1.2.0", "0.57"));
    assert!(!replaced("mirror/vector:stable", ""));
}

#[test]
fn the_pipelines_of_a_workload_are_validated_for_its_version_or_that_of_the_policy() {
    let catalogues = context();
    let catalogues = catalogues.catalogues();
    let settings = json!({"version": "0.48"});
    for (image, of_policy, expected, unmeasured) in [
        (json!("vector:0.58.0"), true, "0.58", None),
        (json!("vector:0.48.0"), false, "0.48", Some("0.48")),
        (json!("vector:stable"), true, "0.48", Some("0.48")),
        (json!("vector:stable"), false, "0.57", None),
        (Value::Null, true, "0.57", None),
        // The nearest one knows best which options there are.
        (json!("vector:0.40.0"), false, "0.48", Some("0.40")),
        (json!("vector:0.54.0"), true, "0.57", Some("0.54")),
        (json!("vector:0.59.0"), true, "0.58", Some("0.59")),
        // The number of an image of one's own tells nothing about Vector.
        (json!("vector:1.2.0"), true, "0.48", Some("1.2")),
    ] {
        let workload = json!({"spec": {"agent": {"image": image}}});
        let used = catalogues.of_workload(of_policy.then_some(&settings), &workload);
        assert_eq!(used.catalogue.version, expected, "{image}");
        let unmeasured = unmeasured.and_then(VectorVersion::parse);
        assert_eq!(used.unmeasured, unmeasured, "{image}");
    }
}

/// Only a version that has the rule denies, whatever the order of the workloads is.
#[test]
fn of_two_releases_with_one_catalogue_the_one_with_more_rules_decides() {
    let rules = rules();
    let mut object = pipeline("loki");
    object["spec"]["sinks"]["out"]["endpoint"] = json!("h:1");
    for releases in [
        ["0.39", "0.40"],
        ["0.40", "0.39"],
        ["0.59", "0.58"],
        ["0.58", "0.59"],
    ] {
        let shared = run_by(&releases);
        let request = ValidationRequest::create(&object).with_related(&shared);
        let [errors, _] = texts(&rules.validate(&request));
        assert!(!errors.is_empty(), "{releases:?}");
    }
}

#[test]
fn a_workload_whose_version_is_unknown_may_replace_variables_as_that_of_the_policy() {
    let settings = |version: &str| json!({"version": version});
    let stable = json!({"spec": {"image": "mirror/vector:stable"}});
    assert!(always_interpolates(Some(&settings("0.48")), &stable));
    assert!(!always_interpolates(Some(&settings("0.57")), &stable));
    assert!(!always_interpolates(None, &stable));
    let named = json!({"spec": {"image": "vector:0.48.0"}});
    assert!(always_interpolates(Some(&settings("0.57")), &named));
}

#[test]
fn the_policy_sets_the_version_of_pipelines_whose_workloads_are_not_known() {
    let rules = Arc::new(rules());
    let validated = |sink: &str, version: &str| {
        let file = json!({"settings": {"vector": {"version": version}}});
        let registry = ValidatorRegistry::default().register(rules.clone());
        let policy = Policy::read(&file, &registry).expect("a policy");
        let object = pipeline(sink);
        texts(&rules.validate(&ValidationRequest::create(&object).with_policy(&policy)))
    };
    let none = [Vec::<String>::new(), Vec::new()];
    assert_eq!(validated("console", "0.57"), none);
    assert_eq!(validated("terminal", "0.48"), none);
    assert!(validated("console", "0.48")[0][0].contains("Vector 0.48 has no such sink"));
    let [errors, warnings] = validated("console", "0.40");
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(
        warnings,
        [
            "spec: is validated for Vector 0.57 (VRL 0.35.0), because there is no catalogue of Vector 0.40, which the policy sets; add the catalogue, or change `settings.vector.version` in the policy [vector-version]"
        ]
    );
}

#[test]
fn problems_of_programs_name_the_compiler_for_another_version() {
    let mut object = pipeline("terminal");
    object["spec"]["transforms"]["t"] =
        json!({"type": "remap", "inputs": ["in"], "source": ".a = to_int(.b)"});
    object["spec"]["sinks"]["out"]["inputs"] = json!(["t"]);
    let shared = run_by(&["0.48"]);
    let request = ValidationRequest::create(&object).with_related(&shared);
    let [errors, _] = texts(&rules().validate(&request));
    assert!(
        errors[0].contains("(Vector 0.48, compiled by VRL 0.35.0)"),
        "{errors:?}"
    );
}

/// Vector 0.57 confines templates, and older versions do not.
#[test]
fn rules_about_the_start_only_warn_about_versions_that_may_not_have_them() {
    let rules = rules();
    let mut object = pipeline("loki");
    object["spec"]["sinks"]["out"]["endpoint"] = json!("http://h:1");
    object["spec"]["sinks"]["out"]["labels"] = json!({"a": "{{ x }}"});
    for (releases, is_denied) in [
        (&["0.57"][..], true),
        (&["0.58"], true),
        (&["unset"], true),
        (&["unknown"], true),
        (&["0.56"], false),
        (&["0.59"], false),
        // Of two versions, the one that has the rule decides.
        (&["0.56", "0.57"], true),
        (&["0.56", "0.54"], false),
    ] {
        let shared = run_by(releases);
        let request = ValidationRequest::create(&object).with_related(&shared);
        let [errors, warnings] = texts(&rules.validate(&request));
        assert_eq!(!errors.is_empty(), is_denied, "{releases:?}: {errors:?}");
        let advice = warnings
            .iter()
            .filter(|text| text.contains("[unmeasured-start]"));
        let advice: Vec<_> = advice.collect();
        assert_eq!(advice.is_empty(), is_denied, "{releases:?}: {warnings:?}");
        let version = releases[0];
        let measured = if version == "0.59" { "0.58" } else { "0.57" };
        let names_both = |text: &&String| {
            text.contains(&format!(
                "(a rule of Vector {measured}, which was not compared with Vector {version})"
            ))
        };
        assert!(advice.iter().all(names_both), "{advice:?}");
    }
}

/// One of a tenant's pipelines would otherwise stop those of all others.
#[test]
fn rules_that_all_versions_have_deny_for_versions_that_were_not_measured() {
    let rules = rules();
    let broken = [
        ("websocket", json!({"uri": ":::not a uri"})),
        ("loki", json!({"endpoint": "h:1", "labels": {"a": "b"}})),
        (
            "blackhole",
            json!({"buffer": {"type": "disk", "max_size": 1000}}),
        ),
        (
            "http",
            json!({"uri": "http://h/", "batch": {"max_events": 0}}),
        ),
        (
            "http",
            json!({"uri": "http://h/", "request": {"headers": {"a b": "c"}}}),
        ),
        ("elasticsearch", json!({"endpoints": [], "mode": "bulk"})),
    ];
    for (kind, options) in &broken {
        let mut object = pipeline(kind);
        let sink = &mut object["spec"]["sinks"]["out"];
        for (name, value) in options.as_object().expect("options") {
            sink[name] = value.clone();
        }
        if *kind == "blackhole" || *kind == "elasticsearch" {
            sink.as_object_mut().expect("a sink").remove("encoding");
        }
        for (release, is_denied) in [
            ("0.40", true),
            ("0.56", true),
            ("0.39", false),
            ("0.59", false),
        ] {
            let shared = run_by(&[release]);
            let request = ValidationRequest::create(&object).with_related(&shared);
            let [errors, warnings] = texts(&rules.validate(&request));
            let has = |list: &[String], rule| list.iter().any(|text| text.contains(rule));
            let found = has(&errors, "[component-start]");
            assert_eq!(found, is_denied, "{release} {object}: {errors:?}");
            let advice = has(&warnings, "[unmeasured-start]");
            assert_eq!(advice, !is_denied, "{release} {object}: {warnings:?}");
        }
    }
}

#[test]
fn the_version_of_the_policy_may_be_one_that_was_not_measured() {
    let rules = Arc::new(rules());
    let mut object = pipeline("loki");
    object["spec"]["sinks"]["out"]["endpoint"] = json!("http://h:1");
    object["spec"]["sinks"]["out"]["labels"] = json!({"a": "{{ x }}"});
    let denied = |version: &str, rules_of_policy: Value| {
        let file = json!({"settings": {"vector": {"version": version}}, "rules": rules_of_policy});
        let registry = ValidatorRegistry::default().register(rules.clone());
        let policy = Policy::read(&file, &registry).expect("a policy");
        let request = ValidationRequest::create(&object);
        let [errors, warnings] = texts(&rules.validate(&request.with_policy(&policy)));
        let has = |list: &[String], rule| list.iter().any(|text| text.contains(rule));
        (
            has(&errors, "[template-confinement]"),
            has(&errors, "[unmeasured-start]"),
            has(&warnings, "[unmeasured-start]"),
        )
    };
    assert_eq!(denied("0.57", json!({})), (true, false, false));
    assert_eq!(denied("0.56", json!({})), (false, false, true));
    let strict = json!({"VectorPipeline": {"unmeasured-start": "deny"}});
    assert_eq!(denied("0.56", strict), (false, true, false));
}

#[test]
fn a_workload_names_the_version_that_its_tag_does_not() {
    let rules = Ruleset::<Vector>::compile().expect("it compiles");
    let rules = rules.with_extension(context());
    let warnings = |image: &str, version: &str| {
        let object = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": "Vector",
            "metadata": {"name": "a", "namespace": "n"},
            "spec": {"agent": {"image": image, "vectorVersion": version}},
        });
        texts(&rules.validate(&ValidationRequest::create(&object)))[1].join("\n")
    };
    assert_eq!(warnings("mirror/logs@sha256:0123", "0.58"), "");
    assert_eq!(warnings("mirror/vector:0.57.0", "0.57"), "");
    let other = warnings("mirror/vector:0.57.0", "0.58");
    assert!(other.contains("spec.agent.vectorVersion: \"0.58\": is not the version that the tag of the image names, Vector 0.57"), "{other}");
    let unknown = warnings("mirror/logs:stable", "0.40");
    assert!(unknown.contains("contains Vector 0.40"), "{unknown}");
}

#[test]
fn an_image_of_a_measured_version_is_not_warned_about() {
    let rules = Ruleset::<Vector>::compile().expect("it compiles");
    let rules = rules.with_extension(context());
    let warnings = |tag: &str| {
        let object = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": "Vector",
            "metadata": {"name": "a", "namespace": "n"},
            "spec": {"agent": {"image": format!("timberio/vector:{tag}")}},
        });
        texts(&rules.validate(&ValidationRequest::create(&object)))[1].len()
    };
    assert_eq!(
        ["0.57.0-alpine", "0.48.0-alpine", "0.40.0", "latest"].map(warnings),
        [0, 1, 1, 1]
    );
}
