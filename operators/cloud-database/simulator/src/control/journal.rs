//! Journal of the calls that a simulator has received.

use jiff::Timestamp;
use serde_json::Value;

use crate::fields::Fields;
use crate::model::Model;

/// Call that a simulator has received.
#[derive(Clone, Debug)]
pub struct JournalEntry {
    /// Name of the operation.
    pub operation: String,
    /// Parameters, with the values of passwords replaced by `***`.
    pub parameters: Value,
    /// Result of the call.
    pub outcome: Outcome,
    /// Access key of the caller.
    pub access_key: String,
    /// Account of the caller.
    pub account: String,
    /// Region.
    pub region: String,
    /// Simulated time.
    pub at: Timestamp,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call succeeded, and the client received the result.
    Succeeded,
    /// The client received an error with this code.
    Failed(String),
    /// The call was carried out, with the success or the error code of the other outcome, and the connection was closed
    /// without an answer.
    AnswerLost(Box<Outcome>),
    /// The connection was closed, and the call was not carried out.
    RequestLost,
}

/// Returns parameters with passwords replaced.
pub(crate) fn without_secrets(model: &Model, operation: &str, parameters: &Fields) -> Value {
    let mut shown = parameters.clone();
    let input = model.shape(&model.operations[operation].input);
    for name in parameters.names() {
        let member = input.members.get(name);
        if member.is_some_and(|member| model.shape(member).sensitive) {
            shown.set(name, "***");
        }
    }
    shown.into()
}
