//! Labels and annotations of owned objects.

use std::collections::BTreeMap;

use lockstep_vector_api::WorkloadRole;

/// Annotation of a Pod template with the fingerprint of the options that Vector does not reload.
pub const GLOBAL_OPTIONS_CHECKSUM: &str = "checksum/global-options";

/// Annotation of a workload while its components get other names, until all Pods are replaced.
pub const DATA_MIGRATION: &str = "lockstep.dev/data-migration";

/// Annotation of a workload with the layout of the component names in its Pods. It is written together with the Pod
/// template, so that it cannot name a layout with which no Pod will run.
pub const DATA_LAYOUT: &str = "lockstep.dev/data-layout";

/// Component of the owned objects of a workload.
#[derive(Clone, Copy)]
pub(crate) enum Component {
    Agent,
    Aggregator,
    EventCollector,
    ConfigCheck,
    /// Pod that keeps running for checks.
    Validator(WorkloadRole),
}

/// Name in the labels of a validator and of its objects.
pub(crate) const VALIDATOR: &str = "vector-validator";

/// Returns the labels that select the Pods of a component. They never change: a selector is immutable.
pub(crate) fn match_labels(instance: &str, component: Component) -> BTreeMap<String, String> {
    let (name, component) = match component {
        Component::Agent => ("vector", "Agent"),
        Component::Aggregator => ("vector", "Aggregator"),
        Component::EventCollector => ("vector", "EventCollector"),
        Component::ConfigCheck => ("vector-configcheck", "ConfigCheck"),
        // An agent and an aggregator may have the same name.
        Component::Validator(WorkloadRole::Agent) => (VALIDATOR, "AgentValidator"),
        Component::Validator(WorkloadRole::Aggregator) => (VALIDATOR, "AggregatorValidator"),
    };
    let labels = [
        ("app.kubernetes.io/managed-by", "vector-operator"),
        ("app.kubernetes.io/name", name),
        ("app.kubernetes.io/component", component),
        ("app.kubernetes.io/instance", instance),
    ];
    labels
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Returns the labels that select the Pods that run Vector for a workload with this name.
pub(crate) fn of_pods(kind: WorkloadRole, name: &str) -> BTreeMap<String, String> {
    let component = match kind {
        WorkloadRole::Agent => Component::Agent,
        WorkloadRole::Aggregator => Component::Aggregator,
    };
    match_labels(name, component)
}

/// Adds the labels, or annotations, of a user. Those of the operator win: without them, no selector would match.
pub(crate) fn merge(
    mut own: BTreeMap<String, String>,
    of_user: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    for (name, value) in of_user {
        own.entry(name.clone()).or_insert_with(|| value.clone());
    }
    own
}
