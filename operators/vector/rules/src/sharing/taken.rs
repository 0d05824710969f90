//! What others have of what a pipeline asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::claims::{PortClaims, listeners};
use super::contest::Arbitration;
use super::namesakes::NameCollision;
use super::runner::Runner;
use super::stored::role;

/// What a pipeline shares with others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SharedAddresses {
    /// Those who run it.
    pub(super) run_by: Vec<String>,
    /// What others have.
    pub(super) taken: Vec<AddressConflict>,
    /// What others are called, where that is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) namesakes: Vec<NameCollision>,
}

/// An address of a pipeline that it cannot have, as the rule is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AddressConflict {
    /// The field that names it.
    pub(super) at: String,
    /// The address, as a configuration has it.
    pub(super) place: String,
    /// With its protocol.
    pub(super) address: String,
    /// Who has it.
    pub(super) by: String,
    /// Who runs both.
    pub(super) runner: String,
}

/// What a pipeline shares: who runs it, and which of its addresses others have there, in the form that the rule
/// reads. Null where nobody runs it.
///
/// `others` is what is told of those under its ports, itself among them or not; `runners` of all who run any that are
/// run beside each other.
#[must_use]
pub fn shared(pipeline: &Value, others: &[Arc<PortClaims>], runners: &[Arc<Runner>]) -> Value {
    let Some(role) = role(pipeline) else {
        return Value::Null;
    };
    let listeners = listeners(pipeline);
    if listeners.is_empty() {
        return Value::Null;
    }
    let me = PortClaims::requested(pipeline, role, &listeners);
    let runners: BTreeMap<_, _> = runners.iter().map(|it| (it.name.as_str(), it)).collect();
    let runners: Vec<&Runner> = runners.into_values().map(|it| &**it).collect();
    let contest = Arbitration::new(&me, others, &runners, role);
    let run_by: Vec<_> = contest.run_by().map(|runner| runner.name.clone()).collect();
    if run_by.is_empty() {
        return Value::Null;
    }
    let taken = contest.conflicts().into_iter().map(|(at, (runner, by))| {
        let listener = &listeners[at];
        AddressConflict {
            at: listener.path().as_str().to_owned(),
            address: listener.address.to_string(),
            place: listener.address.place.clone(),
            by,
            runner: runner.name.clone(),
        }
    });
    let taken = taken.collect();
    json!(SharedAddresses {
        run_by,
        taken,
        namesakes: Vec::new(),
    })
}
