//! Listen addresses of pipelines that one Vector process runs.
//!
//! Pipelines compete for an address only if the same Vector runs them. A pipeline that already listens on the address
//! keeps it. Otherwise, the oldest pipeline gets it; a pipeline that cannot run for another reason does not count.

mod arbitration;
mod assignment;
mod claim;
mod conflict;
#[cfg(test)]
mod convergence;
mod endpoint;
mod intra_pipeline;
pub(crate) mod labels;
mod listener;
mod name_collision;
mod snapshot;
pub(crate) mod status_view;
#[cfg(test)]
mod tests;
pub(crate) mod workload_facts;

use std::collections::BTreeSet;

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use serde::Deserialize;
use serde_json::Value;

pub use crate::port_allocation::claim::PortClaims;
use crate::port_allocation::claim::listeners;
pub use crate::port_allocation::conflict::shared;
use crate::port_allocation::conflict::{AddressConflict, SharedAddresses};
pub use crate::port_allocation::endpoint::ListenEndpoint;
use crate::port_allocation::name_collision::NameCollision;
pub use crate::port_allocation::snapshot::ClusterSnapshot;
use crate::port_allocation::status_view::{is_being_deleted, role, together};
pub use crate::port_allocation::workload_facts::WorkloadFacts;
use crate::rules::cached_validation::CachedValidation;
use crate::tenancy::policy::is_kaasops;
use crate::types::pipeline::Pipeline;
use crate::types::workload_role::WorkloadRole;
use crate::vector_release;
use crate::vector_release::VECTOR_VERSION;
use crate::workload_namespace;

/// Kinds of pipelines.
pub const PIPELINES: &[&str] = &["VectorPipeline", "ClusterVectorPipeline"];

/// Kinds of workloads: Vector workloads that run pipelines.
pub const WORKLOADS: &[&str] = &["Vector", "VectorAggregator", "ClusterVectorAggregator"];

/// Rule that reports address conflicts with other pipelines.
pub const ADDRESS_FREE: &str = "listen-address-conflict";

pub(crate) fn rules<K: Pipeline>() -> [Rule<K>; 4] {
    let rule = |id, sentence, check| Rule {
        id,
        description: sentence,
        severity: Severity::Error,
        reference: "https://github.com/kaasops/vector-operator/tree/main/docs",
        fields: &["spec.sources", "spec.sinks"],
        validate: check,
    };
    [
        rule(
            "duplicate-listen-address",
            "No two components of a pipeline listen on addresses of which one host can serve only one.",
            intra_pipeline::addresses_apart,
        ),
        rule(
            ADDRESS_FREE,
            "No other pipeline that the same Vector runs listens on the same address; the controller, which knows the other pipelines, reports a conflict for the pipeline that came later.",
            address_free,
        ),
        Rule {
            severity: Severity::Warning,
            fields: &["spec.sources", "spec.transforms", "spec.sinks"],
            ..rule(
                "component-name-conflict",
                "No component gets the same name as a component of another pipeline if another operator joins the parts of names with dashes; `lockstep audit`, which knows the other pipelines, reports a conflict for the pipeline that came later.",
                names_apart,
            )
        },
        Rule {
            severity: Severity::Warning,
            fields: &["spec"],
            ..rule(
                VECTOR_VERSION,
                "The workloads that run the pipeline have the release of Vector that it is validated for; the controller and `lockstep audit`, which know the workloads, report others.",
                |context, diagnostics| {
                    vector_release::validate_workloads(CachedValidation::of(context), diagnostics);
                },
            )
        },
    ]
}

/// Returns what the pipeline shares with others, if the validation request contains it.
fn shared_by<K>(context: &RuleContext<'_, K>) -> Option<SharedAddresses> {
    SharedAddresses::deserialize(context.related()?).ok()
}

fn address_free<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let permits = is_kaasops(context.settings);
    for taken in shared_by(context).into_iter().flat_map(|it| it.taken) {
        if taken.replaces_metrics && permits {
            continue;
        }
        let AddressConflict {
            address,
            by,
            workload,
            ..
        } = taken;
        let detail = format!(
            "{address} is already used by {by} in the Pods of {workload}; use another port, or change the labels of the pipeline so that another Vector runs it"
        );
        let path = FieldPath::new(taken.at);
        diagnostics.push(FieldError::invalid(path, taken.endpoint, detail));
    }
}

fn names_apart<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let shared = shared_by(context).into_iter();
    for namesake in shared.flat_map(|it| it.namesakes) {
        let NameCollision { called, by, .. } = namesake;
        let detail = format!(
            "gets the name `{called}` if another operator runs the pipeline, like a component of {by}, and one would replace the other; rename this component or its pipeline"
        );
        let path = FieldPath::new(namesake.at);
        diagnostics.push(FieldError::invalid(path, namesake.id, detail));
    }
}

/// Returns the index keys of a pipeline itself and of the pipelines with which it may share a port.
#[must_use]
pub fn keys(pipeline: &Value) -> Vec<String> {
    let Some(role) = role(pipeline) else {
        return Vec::new();
    };
    let together = together(pipeline, role);
    let listeners = listeners(pipeline).into_iter();
    let ports = listeners.map(|it| format!("{together} {}", it.endpoint.port));
    let keys: BTreeSet<_> = ports.chain(itself(pipeline)).collect();
    keys.into_iter().collect()
}

/// Returns the index key of the workloads that may run a pipeline, or none if no role can run it.
#[must_use]
pub fn workloads(pipeline: &Value) -> Option<String> {
    role(pipeline).map(|role| together(pipeline, role))
}

/// Returns the index entry of a pipeline: its index keys (group and port) and the addresses that it claims. The
/// entry of a pipeline that is being deleted is empty.
#[must_use]
pub fn index_pipeline(pipeline: &Value) -> (Vec<String>, PortClaims) {
    if is_being_deleted(pipeline) {
        return (Vec::new(), PortClaims::default());
    }
    let claims = PortClaims::from_status(pipeline);
    let keys = claims
        .all
        .iter()
        .map(|claim| format!("{} {}", together(pipeline, claim.role), claim.endpoint.port));
    let keys: BTreeSet<_> = keys.chain(itself(pipeline)).collect();
    (keys.into_iter().collect(), claims)
}

/// Returns the index key of only this pipeline: a change of its labels changes its workloads, even if its claims stay the
/// same.
fn itself(pipeline: &Value) -> Option<String> {
    workloads(pipeline).map(|_| format!("itself {}", pipeline["metadata"]["uid"]))
}

/// Returns the index entry of a workload: its index key and the facts that pipelines need. One that runs nothing has no key:
/// otherwise, its author could make the pipelines of others compete for an address.
#[must_use]
pub fn index_workload(workload: &Value) -> (Vec<String>, WorkloadFacts) {
    let role = if workload["kind"] == "Vector" {
        WorkloadRole::Agent
    } else {
        WorkloadRole::Aggregator
    };
    let runs = !is_being_deleted(workload) && !workload_namespace::runs_nothing(workload);
    let keys = runs.then(|| together(workload, role));
    (keys.into_iter().collect(), WorkloadFacts::new(workload))
}

/// Returns the workloads of a pipeline from what it [shares](shared).
#[must_use]
pub fn run_by(shared: &Value) -> Vec<String> {
    let shared = SharedAddresses::deserialize(shared);
    shared.map(|shared| shared.run_by).unwrap_or_default()
}

/// Returns the addresses for the status of a pipeline: those that it listens on, without the addresses that others use;
/// if `waits` is true, the addresses that others use.
#[must_use]
pub fn addresses(pipeline: &Value, shared: &Value, waits: bool) -> Vec<String> {
    let Ok(shared) = SharedAddresses::deserialize(shared) else {
        return Vec::new();
    };
    let taken = shared.taken.into_iter();
    // A valid pipeline whose exporter replaces Vector's own metrics is permitted to.
    let taken = taken.filter(|taken| waits || !taken.replaces_metrics);
    let taken: BTreeSet<_> = taken.map(|taken| taken.address).collect();
    let addresses = if waits {
        taken
    } else {
        let listeners = listeners(pipeline).into_iter();
        let all: BTreeSet<_> = listeners.map(|it| it.address.to_string()).collect();
        &all - &taken
    };
    addresses.into_iter().collect()
}
