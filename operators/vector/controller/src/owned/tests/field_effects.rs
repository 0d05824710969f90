//! The effect of every field. A field without a row in this table makes the tests fail.

mod aggregator;
mod container;
mod manifests;
mod options;
mod page;
mod pod;

use std::collections::BTreeSet;

use lockstep_shared_validation::ValidatedResource;
use lockstep_vector_api::{ClusterVectorAggregator, Vector, VectorAggregator};
use serde_json::{Value, json};

use crate::owned::tests::{CHECK, Input, Kind, check_in_pod, event_pipeline, listener, validator};

/// Fields whose own fields have rows.
const STRUCTURES: [&str; 8] = [
    "agent",
    "api",
    "autoscaling",
    "configCheck",
    "eventCollector",
    "persistence",
    "podDisruptionBudget",
    "reload",
];

/// Effect of a field.
enum Effect {
    /// Values in owned objects, each by kind, suffix of the name and JSON pointer. `workload` is the kind that runs
    /// Vector.
    Objects(Vec<(&'static str, &'static str, &'static str, Value)>),
    /// Only Vector's configuration depends on the field.
    Configuration,
    /// Nothing depends on the field any more, for this reason.
    None(#[allow(dead_code, reason = "it is read by people")] &'static str),
}

/// Field with a value and its effect.
struct Row {
    field: &'static str,
    value: Value,
    /// Other fields that the effect needs.
    given: Value,
    effect: Effect,
}

fn row(field: &'static str, value: Value, effect: Effect) -> Row {
    let given = json!({});
    Row {
        field,
        value,
        given,
        effect,
    }
}

/// Returns a row of a field that has one value in the object that runs Vector.
fn workload(field: &'static str, value: Value, pointer: &'static str, result: Value) -> Row {
    let effect = Effect::Objects(vec![("workload", "", pointer, result)]);
    row(field, value, effect)
}

/// Returns a row of a field whose value is copied to the object that runs Vector.
fn copied(field: &'static str, value: Value, pointer: &'static str) -> Row {
    workload(field, value.clone(), pointer, value)
}

impl Row {
    fn given(mut self, fields: Value) -> Self {
        self.given = fields;
        self
    }
}

/// Returns the rows of the fields that all kinds have.
fn of_every_workload() -> Vec<Row> {
    [
        pod::scheduling(),
        pod::metadata(),
        pod::storage(),
        container::vector(),
        container::config_reloader(),
        options::global(),
        options::metrics(),
        options::config_check(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the rows of the fields that only agents have.
fn of_vector() -> Vec<Row> {
    vec![
        row("useApiServerCache", json!(true), Effect::Configuration),
        row(
            "selector",
            json!({"matchLabels": {"a": "b"}}),
            Effect::Configuration,
        ),
    ]
}

/// Returns the rows of the fields that both kinds of aggregators have.
fn of_aggregators() -> Vec<Row> {
    [
        aggregator::pods(),
        aggregator::event_collector(),
        aggregator::autoscaling(),
        aggregator::persistence(),
        aggregator::disruption_budget(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the rows of the fields that only the cluster-scoped kind has.
fn of_cluster_aggregator() -> Vec<Row> {
    let namespace = |kind| (kind, "", "/metadata/namespace", json!("elsewhere"));
    let kinds = ["workload", "Secret", "ServiceAccount"];
    let effect = Effect::Objects(kinds.map(namespace).to_vec());
    vec![row("resourceNamespace", json!("elsewhere"), effect)]
}

/// Returns all rows of a kind, with the paths of the fields in its spec.
fn rows(kind: Kind) -> Vec<(String, Row)> {
    let at = |prefix: &str, rows: Vec<Row>| {
        let rows = rows.into_iter();
        let rows = rows.map(|row| (format!("{prefix}{}", row.field), row));
        rows.collect::<Vec<_>>()
    };
    match kind {
        Kind::Vector => [
            at("agent.", of_every_workload()),
            at("agent.", pod::strategy_of_agents()),
            at("", of_vector()),
        ]
        .concat_all(),
        Kind::VectorAggregator => {
            [at("", of_every_workload()), at("", of_aggregators())].concat_all()
        }
        Kind::ClusterVectorAggregator => [
            at("", of_every_workload()),
            at("", of_aggregators()),
            at("", of_cluster_aggregator()),
        ]
        .concat_all(),
    }
}

/// Concatenation of lists whose items cannot be cloned.
trait ConcatAll<T> {
    fn concat_all(self) -> Vec<T>;
}

impl<T, const N: usize> ConcatAll<T> for [Vec<T>; N] {
    fn concat_all(self) -> Vec<T> {
        self.into_iter().flatten().collect()
    }
}

/// Returns the input with the fields that the effect of a row needs.
fn input(kind: Kind, path: &str, row: &Row) -> Input<'static> {
    let mut input = Input::new(kind);
    input.publication.checks = vec![check_in_pod()];
    input.publication.validator = Some(validator());
    input.publication.services = match kind {
        Kind::Vector => Vec::new(),
        Kind::VectorAggregator | Kind::ClusterVectorAggregator => {
            vec![listener("app", "in", 9000), event_pipeline(Some("team"))]
        }
    };
    let prefix = path.strip_suffix(row.field).expect("the path ends so");
    for (name, value) in row.given.as_object().expect("fields") {
        input = input.with(&format!("{prefix}{name}"), value.clone());
    }
    input
}

/// Returns a value in an owned object.
fn value(input: &Input<'_>, kind: &str, suffix: &str, pointer: &str) -> Value {
    let name = match suffix {
        "" => input.kind.object_name().to_owned(),
        "event-collector" => "logs-event-collector".to_owned(),
        "configcheck" => CHECK.to_owned(),
        "configcheck-account" => format!("{}-configcheck", input.kind.object_name()),
        suffix => format!("{}-{suffix}", input.kind.object_name()),
    };
    let kind = if kind == "workload" {
        input.kind.workload()
    } else {
        kind
    };
    let child = input.child(kind, &name).unwrap_or_default();
    child.pointer(pointer).cloned().unwrap_or_default()
}

/// Returns the namespace of the owned objects.
fn namespace(kind: Kind) -> &'static str {
    match kind {
        Kind::ClusterVectorAggregator => "logging",
        Kind::Vector | Kind::VectorAggregator => "team",
    }
}

/// Returns an expected value in a namespace.
fn in_namespace(expected: &Value, namespace: &str) -> Value {
    match expected {
        Value::String(text) => json!(text.replace("NAMESPACE", namespace)),
        expected => expected.clone(),
    }
}

#[test]
fn every_field_has_its_effect() {
    for kind in Kind::ALL {
        for (path, row) in rows(kind) {
            check(kind, &path, &row);
        }
    }
}

/// Checks that the field of a row has its effect, and that nothing else has it.
fn check(kind: Kind, path: &str, row: &Row) {
    let without = input(kind, path, row);
    let with = without.clone().with(path, row.value.clone());
    let Effect::Objects(effects) = &row.effect else {
        assert_eq!(without.objects(), with.objects(), "{kind:?} {path}");
        return;
    };
    for (child, suffix, pointer, expected) in effects {
        let expected = in_namespace(expected, namespace(kind));
        let found = value(&with, child, suffix, pointer);
        assert_eq!(found, expected, "{kind:?} {path}: {child} {pointer}");
        let found = value(&without, child, suffix, pointer);
        assert_ne!(
            found, expected,
            "{kind:?} without {path}: {child} {pointer}"
        );
    }
}

#[test]
fn every_field_of_the_schema_is_in_the_table() {
    for (kind, crd) in [
        (Kind::Vector, Vector::crd()),
        (Kind::VectorAggregator, VectorAggregator::crd()),
        (
            Kind::ClusterVectorAggregator,
            ClusterVectorAggregator::crd(),
        ),
    ] {
        let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
        let mut fields = BTreeSet::new();
        collect(schema.expect("a spec"), "", &mut fields);
        let rows: BTreeSet<_> = rows(kind).into_iter().map(|(path, _)| path).collect();
        assert_eq!(fields, rows, "{kind:?}");
    }
}

/// Collects the paths of the fields that need a row.
fn collect(schema: &Value, prefix: &str, fields: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().expect("properties") {
        let path = format!("{prefix}{name}");
        if STRUCTURES.contains(&name.as_str()) {
            collect(property, &format!("{path}."), fields);
        } else {
            fields.insert(path);
        }
    }
}
