//! What pipelines have between them that one Vector runs: the addresses where they listen.
//!
//! Who listens already goes on, beside those whom the same Vector runs. Of the others the eldest gets the address; one
//! that cannot run for another reason does not count.

mod claims;
mod contest;
mod given;
mod labels;
mod listener;
mod namesakes;
mod neighbourhood;
mod own;
mod place;
mod runner;
#[cfg(test)]
mod settling;
mod stored;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};

use crate::pipeline::Pipeline;
use crate::role::RunnerKind;
pub use claims::PortClaims;
use claims::listeners;
use namesakes::NameCollision;
pub use neighbourhood::ClusterSnapshot;
pub use runner::Runner;
use stored::{is_being_deleted, role, together};
pub use taken::shared;
use taken::{AddressConflict, SharedAddresses};

/// Kinds that hold pipelines.
pub const PIPELINES: &[&str] = &["VectorPipeline", "ClusterVectorPipeline"];

/// Kinds that run them.
pub const RUNNERS: &[&str] = &["Vector", "VectorAggregator", "ClusterVectorAggregator"];

/// The rule that tells of addresses.
pub const ADDRESS_FREE: &str = "address-free";

pub(crate) fn rules<K: Pipeline>() -> [Rule<K>; 3] {
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
            "addresses-apart",
            "No two components listen where one host lets only one.",
            own::addresses_apart,
        ),
        rule(
            ADDRESS_FREE,
            "No other pipeline that the same Vector runs listens where this one does. The loop knows the others, and tells the one that came later.",
            address_free,
        ),
        Rule {
            severity: Severity::Warning,
            fields: &["spec.sources", "spec.transforms", "spec.sinks"],
            ..rule(
                "names-apart",
                "No component of another pipeline comes to the name of one of this one where another operator joins names by dashes. The audit knows the others, and tells the one that came later.",
                names_apart,
            )
        },
    ]
}

/// What is known of others.
fn shared_by<K>(subject: &RuleContext<'_, K>) -> Option<SharedAddresses> {
    SharedAddresses::deserialize(subject.related()?).ok()
}

fn address_free<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    for taken in shared_by(subject).into_iter().flat_map(|it| it.taken) {
        let AddressConflict {
            address,
            by,
            runner,
            ..
        } = taken;
        let detail = format!(
            "{address} is taken by {by}, and {runner} runs both; listen on another port, or have another run it by the labels that it selects"
        );
        let path = FieldPath::new(taken.at);
        findings.push(FieldError::invalid(path, taken.place, detail));
    }
}

fn names_apart<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    let shared = shared_by(subject).into_iter();
    for namesake in shared.flat_map(|it| it.namesakes) {
        let NameCollision { called, by, .. } = namesake;
        let detail = format!(
            "is called `{called}` where another operator runs it, as a component of {by} is, and one takes the place of the other; rename this component, or its pipeline"
        );
        let path = FieldPath::new(namesake.at);
        findings.push(FieldError::invalid(path, namesake.id, detail));
    }
}

/// Under which keys a pipeline finds itself and those with which it may have a port in common.
#[must_use]
pub fn keys(pipeline: &Value) -> Vec<String> {
    let Some(role) = role(pipeline) else {
        return Vec::new();
    };
    let together = together(pipeline, role);
    let listeners = listeners(pipeline).into_iter();
    let ports = listeners.map(|it| format!("{together} {}", it.place.port));
    let keys: BTreeSet<_> = ports.chain(itself(pipeline)).collect();
    keys.into_iter().collect()
}

/// Under which key those are found that may run a pipeline; none where that does not matter to it.
#[must_use]
pub fn runners(pipeline: &Value) -> Option<String> {
    let role = role(pipeline)?;
    (!listeners(pipeline).is_empty()).then(|| together(pipeline, role))
}

/// What others are told of a pipeline, and under which ports: where it is to listen. Nothing of one that is being
/// deleted.
#[must_use]
pub fn told_of_pipeline(pipeline: &Value) -> (Vec<String>, PortClaims) {
    if is_being_deleted(pipeline) {
        return (Vec::new(), PortClaims::default());
    }
    let claims = PortClaims::from_status(pipeline);
    let keys = claims
        .all
        .iter()
        .map(|claim| format!("{} {}", together(pipeline, claim.role), claim.place.port));
    let keys: BTreeSet<_> = keys.chain(itself(pipeline)).collect();
    (keys.into_iter().collect(), claims)
}

/// The key of a pipeline that listens and nobody else's: who runs it changes with its labels, whatever it claims.
fn itself(pipeline: &Value) -> Option<String> {
    runners(pipeline).map(|_| format!("itself {}", pipeline["metadata"]["uid"]))
}

/// What pipelines are told of one who may run them, and under which key.
#[must_use]
pub fn told_of_runner(runner: &Value) -> (Vec<String>, Runner) {
    let role = if runner["kind"] == "Vector" {
        RunnerKind::Agent
    } else {
        RunnerKind::Aggregator
    };
    let keys = (!is_being_deleted(runner)).then(|| together(runner, role));
    (keys.into_iter().collect(), Runner::new(runner))
}

/// Who runs a pipeline, of what it [shares](shared).
#[must_use]
pub fn run_by(shared: &Value) -> Vec<String> {
    let shared = SharedAddresses::deserialize(shared);
    shared.map(|shared| shared.run_by).unwrap_or_default()
}

/// Where a pipeline listens that is run, but for what others have; that, if it waits for these.
#[must_use]
pub fn addresses(pipeline: &Value, shared: &Value, waits: bool) -> Vec<String> {
    let Ok(shared) = SharedAddresses::deserialize(shared) else {
        return Vec::new();
    };
    let taken = shared.taken.into_iter().map(|taken| taken.address);
    let taken: BTreeSet<_> = taken.collect();
    let addresses = if waits {
        taken
    } else {
        let listeners = listeners(pipeline).into_iter();
        let all: BTreeSet<_> = listeners.map(|it| it.address.to_string()).collect();
        &all - &taken
    };
    addresses.into_iter().collect()
}
