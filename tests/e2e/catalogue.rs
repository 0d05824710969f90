//! Every rule has cases in the corpus: one that violates it and a similar one that does not.

use lockstep_cloud_database_api::CloudDatabase;
use lockstep_echo::Echo;
use lockstep_shared_validation::{
    LastValidated, Layer, RuleInfo, Ruleset, Severity, ValidatedResource, ValidationRequest,
    Validator,
};
use lockstep_vector_api::{
    ClusterVectorAggregator, ClusterVectorPipeline, Vector, VectorAggregator, VectorPipeline,
};
use serde_json::Value;

use crate::corpus::{Case, Expected, corpus, corpus_of};

/// Rules of pipelines about relations to other objects. A case has only one object, so that `sharing::` and
/// `vector::` test them.
const ABOUT_OTHER_OBJECTS: &[&str] = &[
    "listen-address-conflict",
    "component-name-conflict",
    "vector-version",
    "unmeasured-start",
];

/// Rules about the tests of a pipeline, which only `lockstep check` runs. `vector_flow::` tests them.
const OF_CHECK_ONLY: &[&str] = &["pipeline-tests", "pipeline-tests-run"];

/// Rules about what RDS offers in an account, which cases do not have. Unit tests of the rules and `rds_catalogue::` test
/// them.
const ABOUT_AN_ACCOUNT: &[&str] = &["not-offered"];

/// Rules about what a policy lists, which cases do not have. A unit test of the rule and `policy::` test them.
const ABOUT_A_POLICY: &[&str] = &["not-allowed-in-namespace"];

/// Beginning of the references to types of the Kubernetes API, whose schemas have thousands of rules. `recorded` tests how
/// schemas are enforced, and the cases have one of each kind of rule.
const KUBERNETES_API: &str = "https://kubernetes.io/docs/reference/kubernetes-api/";

#[test]
fn every_rule_has_a_case_that_violates_it_and_one_that_does_not() {
    let pipelines = corpus_of("vector-pipeline");
    assert!(pipelines.len() >= 200, "the corpus has lost its cases");
    let missing = [
        missing_of::<CloudDatabase>(&corpus()),
        missing_of::<Echo>(&corpus_of("echo")),
        missing_of::<VectorPipeline>(&pipelines),
        missing_of::<ClusterVectorPipeline>(&corpus_of("cluster-vector-pipeline")),
        missing_of::<Vector>(&corpus_of("vector")),
        missing_of::<VectorAggregator>(&corpus_of("vector-aggregator")),
        missing_of::<ClusterVectorAggregator>(&corpus_of("cluster-vector-aggregator")),
    ]
    .concat();
    assert!(missing.is_empty(), "{missing:#?}");
}

fn missing_of<K: ValidatedResource>(cases: &[Case]) -> Vec<String> {
    let ruleset = Ruleset::<K>::compile().expect("the rules");
    let without_cases = match K::KIND {
        kind if kind.ends_with("Pipeline") => [ABOUT_OTHER_OBJECTS, OF_CHECK_ONLY].concat(),
        "CloudDatabase" => [ABOUT_AN_ACCOUNT, ABOUT_A_POLICY].concat(),
        _ => Vec::new(),
    };
    let missing = missing(&ruleset.rules(), cases, &without_cases).into_iter();
    missing.map(|what| format!("{}: {what}", K::KIND)).collect()
}

fn missing(catalogue: &[RuleInfo], cases: &[Case], without_cases: &[&str]) -> Vec<String> {
    let mut missing = Vec::new();
    let own = catalogue
        .iter()
        .filter(|entry| !entry.reference.starts_with(KUBERNETES_API));
    for entry in own {
        let breaks = |case: &&Case| match entry.severity {
            Severity::Error => case.errors.iter().any(|error| error.rule == entry.id),
            Severity::Warning => case.warnings.iter().flatten().any(|rule| *rule == entry.id),
        };
        let breaking: Vec<_> = cases.iter().filter(breaks).collect();
        if breaking.is_empty() != without_cases.contains(&entry.id.as_str()) {
            missing.push(format!("{} has no case that violates it", entry.id));
        }
        // A case that satisfies the rule: the object sets all fields of the rule, and it has no errors or, for a
        // structural rule, only errors of other Rust rules. For a rule that only changes violate, it is a change.
        let is_about_changes =
            !breaking.is_empty() && breaking.iter().all(|case| case.old.is_some());
        let satisfies = |case: &&Case| {
            let mut fields = entry.fields.iter();
            let is_another = |error: &Expected| !error.is_structural() && error.rule != entry.id;
            let is_valid = match entry.layer {
                Layer::Schema => case.errors.iter().all(is_another),
                Layer::Cel | Layer::Rust => case.errors.is_empty(),
            };
            is_valid
                && fields.all(|field| has(&case.object, field))
                && (case.old.is_some() || !is_about_changes)
                && (case.warnings.as_ref().is_some_and(Vec::is_empty)
                    || entry.severity == Severity::Error)
        };
        if !cases.iter().any(|case| satisfies(&case)) {
            missing.push(format!("{} has no case that satisfies it", entry.id));
        }
    }
    missing
}

#[test]
fn the_defaults_are_the_same_with_and_without_validation() {
    let ruleset = lockstep_cloud_database_api::ruleset().expect("the rules");
    let mut adding = 0;
    for case in corpus() {
        let last_validated = case.old.as_ref().and_then(LastValidated::from_status_of);
        let request =
            ValidationRequest::for_update(&case.object, case.old.as_ref(), last_validated.as_ref());
        let validated = ruleset.validate(&request).defaults;
        assert_eq!(ruleset.default_patch(&request), validated, "{}", case.name);
        adding += usize::from(!validated.0.is_empty());
    }
    assert!(adding > 100, "only {adding} objects lack a default");
}

/// Returns true if the object has a value at a path such as `spec.tags[*]` or `spec.list[].name`.
fn has(value: &Value, field: &str) -> bool {
    let (name, rest) = match field.find(['.', '[']) {
        Some(0) => return below(value, field),
        Some(at) => field.split_at(at),
        None => (field, ""),
    };
    value
        .get(name)
        .is_some_and(|value| rest.is_empty() || below(value, rest))
}

fn below(value: &Value, rest: &str) -> bool {
    let mut children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    };
    match rest.strip_prefix('.') {
        Some(name) => has(value, name),
        None => {
            let rest = rest.split_once(']').map_or("", |(_, rest)| rest);
            children.any(|child| rest.is_empty() || below(child, rest))
        }
    }
}
