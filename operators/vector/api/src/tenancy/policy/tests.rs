use std::sync::Arc;

use lockstep_shared_validation::{
    Policy, Ruleset, ValidationRequest, Validator, ValidatorRegistry,
};
use serde_json::json;

use super::*;
use crate::types::pipeline::VectorPipeline;

#[test]
fn a_list_that_is_set_replaces_the_default_list() {
    let own = Section::of(Some(&json!({"tenants": {"deniedSinks": []}}))).tenants;
    let other = TenantPolicy::default();
    assert!(own.denied_sinks.is_empty() && !other.denied_sinks.is_empty());
    assert_eq!(own.denied_functions, other.denied_functions);
    assert_eq!(Section::of(None).tenants, other);
}

#[test]
fn catalogues_are_learned_only_if_the_policy_says_so() {
    let learns = |section: Value| {
        assert_eq!(check(&section), Ok(()));
        Section::of(Some(&section)).learns_catalogues()
    };
    assert!(!Section::of(None).learns_catalogues());
    assert!(!learns(json!({"catalogue": "Files"})));
    assert!(learns(json!({"catalogue": "Learn", "version": "0.48"})));
}

#[test]
fn unknown_names_and_invalid_patterns_are_rejected() {
    for (section, problem) in [
        (
            json!({"tenants": {"deniedSinks": ["fil"]}}),
            "did you mean `file`?",
        ),
        (
            json!({"tenants": {"deniedFunctions": ["get_env"]}}),
            "tenants.deniedFunctions: the function `get_env` is unknown; name a function of VRL",
        ),
        (
            json!({"tenants": {"deniedSink": []}}),
            "tenants.deniedSink: the key is unknown; the keys are `agentIdentity`, `deniedFunctions`, ",
        ),
        (
            json!({"tenant": {}}),
            "tenant: the key is unknown; the keys are `catalogue`, `envVarInterpolation`, `exact`, `forbidDashesInNames`, `namespaces`, `preset`, `quota`, `tenants`, `version` and `workloads`",
        ),
        (
            json!({"quota": {"memory": 1}}),
            "quota: unknown field `memory`",
        ),
        (
            json!({"quota": {"memoryBytes": "1Gi"}}),
            "the keys are `components`, `configurationBytes`, ",
        ),
        (
            json!({"namespaces": {"a": {"quotas": {}}}}),
            "namespaces: unknown field `quotas`",
        ),
        (
            json!({"workloads": {"memoryBytes": 1}}),
            "workloads: unknown field `memoryBytes`",
        ),
        (
            json!({"version": 0.57}),
            "version: 0.57 is no minor version of Vector; write one in quotes, such as `\"0.57\"`",
        ),
        (json!({"version": "0.57.0"}), "write one in quotes"),
        (
            json!({"catalogue": "learn"}),
            "catalogue: \"learn\" is unknown; the values are `Files` and `Learn`",
        ),
        (json!([]), "the section must be a mapping"),
        (
            json!({"tenants": []}),
            "tenants: the value must be a mapping",
        ),
        (
            json!({"tenants": {"files": ["a", 1]}}),
            "tenants.files: the value must be a list of texts",
        ),
        (
            json!({"forbidDashesInNames": "yes"}),
            "forbidDashesInNames: the value must be true or false",
        ),
        (
            json!({"envVarInterpolation": 1}),
            "envVarInterpolation: the value must be true or false",
        ),
        (
            json!({"tenants": {"files": ["a**"]}}),
            "tenants.files: the pattern `a**` is invalid: ",
        ),
    ] {
        let error = check(&section).expect_err("it is rejected");
        assert!(error.contains(problem), "{error}");
    }
    assert_eq!(check(&json!({})), Ok(()));
    let lists = LISTS.map(|key| (key.to_owned(), json!([])));
    let all = json!({"tenants": serde_json::Map::from_iter(lists), "envVarInterpolation": true, "exact": true, "forbidDashesInNames": true, "quota": {"pipelines": 1}, "namespaces": {"a": {"quota": {"pipelines": 2}}}, "workloads": {"diskBytes": 1}});
    assert_eq!(check(&all), Ok(()));
}

#[test]
fn a_policy_accepts_the_section_and_names_unknown_sections() {
    let ruleset = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let validators = ValidatorRegistry::default().register(Arc::new(ruleset));
    let read = |settings: Value| {
        let policy = Policy::read(&json!({"settings": settings}), &validators);
        policy.map_err(|error| error.to_string())
    };
    let section = json!({"tenants": {"deniedSinks": []}});
    let policy = read(json!({"vector": section})).expect("it is accepted");
    assert_eq!(policy.settings("vector"), Some(&section));
    assert_eq!(read(json!({"vector": null})), Ok(Policy::default()));
    let error = read(json!({"vektor": null})).expect_err("no such section");
    assert_eq!(
        error,
        "settings.vektor: the section is unknown; the sections are vector"
    );
    let error = read(json!({"vector": {"tenants": {"files": 1}}})).expect_err("no list");
    assert_eq!(
        error,
        "settings.vector: tenants.files: the value must be a list of texts"
    );
}

/// Returns the rules that a tenant's pipeline with this sink violates under a policy, each with its message.
fn broken(sink: &Value, tenants: &Value) -> Vec<(String, String)> {
    let ruleset = Arc::new(Ruleset::<VectorPipeline>::compile().expect("it compiles"));
    let validators = ValidatorRegistry::default().register(Arc::clone(&ruleset) as Arc<_>);
    let file = json!({"settings": {"vector": {"tenants": tenants}}});
    let policy = Policy::read(&file, &validators).expect("a policy");
    let mut pipeline = json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"sources": {"in": {"type": "kubernetes_logs"}}, "sinks": {"out": sink}},
    });
    pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in"]);
    let errors = ruleset
        .validate(&ValidationRequest::create(&pipeline).with_policy(&policy))
        .errors;
    let errors = errors.into_iter();
    errors.map(|it| (it.rule, it.error.to_string())).collect()
}

#[test]
fn tenants_may_opt_out_of_confinement_only_if_a_policy_allows_it() {
    let allowed = json!({"deniedOptions": []});
    let kafka = json!({
        "type": "kafka", "bootstrap_servers": "kafka:9092", "topic": "{{ app }}", "encoding": {"codec": "json"},
    });
    let advice = |tenants: &Value| {
        let [(rule, message)] = &broken(&kafka, tenants)[..] else {
            panic!("one error");
        };
        assert_eq!(rule, "template-confinement");
        message.contains("only administrators can turn confinement off")
    };
    assert!(advice(&json!({})));
    assert!(!advice(&allowed));
    let mut opted_out = kafka.clone();
    opted_out[confinement::OPT_OUT] = true.into();
    let nested = json!({"type": "opentelemetry", "protocol": {
        "type": "http", "uri": "{{ app }}", "encoding": {"codec": "otlp"}, (confinement::OPT_OUT): true,
    }});
    for sink in [opted_out, nested] {
        let broken_rules: Vec<_> = broken(&sink, &json!({}))
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(broken_rules, ["tenant-options"]);
        assert_eq!(broken(&sink, &allowed), []);
    }
}

#[test]
fn tenants_may_opt_out_for_the_values_of_labels_of_loki_if_a_policy_allows_it() {
    let loki = |label: &str, value: &str, tenant: &str| {
        json!({
            "type": "loki", "endpoint": "http://h:1", "encoding": {"codec": "json"},
            "labels": {label: value}, "tenant_id": tenant, (confinement::OPT_OUT): true,
        })
    };
    let allowed = json!({"unconfinedLokiLabels": true});
    let rules = |sink: &Value, tenants: &Value| {
        let errors = broken(sink, tenants).into_iter();
        errors.map(|error| error.0).collect::<Vec<_>>()
    };
    let free = loki("app", "{{ app }}", "team-{{ x }}");
    assert_eq!(rules(&free, &json!({})), ["tenant-options"]);
    let none = [""; 0];
    assert_eq!(rules(&free, &allowed), none);
    assert_eq!(rules(&loki("pod_*", "{{ labels }}", "a"), &allowed), none);
    for (label, value, tenant) in [
        ("{{ name }}", "a", "a"),
        ("*", "{{ labels }}", "a"),
        ("app", "a", "{{ tenant }}"),
    ] {
        let sink = loki(label, value, tenant);
        assert_eq!(rules(&sink, &allowed), ["tenant-options"], "{sink}");
    }
    // All else stays denied.
    let mut others = loki("app", "{{ app }}", "a");
    others["librdkafka_options"] = json!({});
    assert!(rules(&others, &allowed).contains(&"tenant-options".to_owned()));
    let kafka = json!({
        "type": "kafka", "bootstrap_servers": "kafka:9092", "topic": "{{ app }}",
        "encoding": {"codec": "json"}, (confinement::OPT_OUT): true,
    });
    assert_eq!(rules(&kafka, &allowed), ["tenant-options"]);
    // Only there, the author is advised to opt out.
    let mut confined = loki("app", "{{ app }}", "{{ tenant }}");
    let options = confined.as_object_mut().expect("options");
    options.remove(confinement::OPT_OUT);
    let errors = broken(&confined, &allowed);
    let administrators = "only administrators can turn confinement off";
    let tells = errors.iter().map(|error| error.1.contains(administrators));
    let by_path: Vec<_> = errors.iter().map(|error| &*error.1).zip(tells).collect();
    for (text, tells) in by_path {
        assert_eq!(tells, text.contains("tenant_id"), "{text}");
    }
}

#[test]
fn a_path_with_parent_directories_is_not_allowed() {
    let policy = TenantPolicy::default();
    assert!(policy.allows_file("/etc/ssl/certs/ca.crt"));
    assert!(policy.allows_file("/etc/ssl/certs/own/ca.crt"));
    for name in [
        "/etc/ssl/certs/../../shadow",
        "/etc/shadow",
        "etc/ssl/certs/ca.crt",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
    ] {
        assert!(!policy.allows_file(name), "{name}");
    }
}
