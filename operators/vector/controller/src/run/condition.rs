//! Conditions of a workload that exist only where there is, or was, something to report.

use lockstep_controller::OperatorCondition;
use serde_json::Value;

/// Returns a condition that is true with a problem. Without one, it is false, or does not exist.
pub(crate) fn warning(
    workload: &Value,
    type_: &'static str,
    problem: Option<String>,
) -> Option<OperatorCondition> {
    if let Some(message) = problem {
        return Some(OperatorCondition {
            type_,
            is_true: true,
            reason: "Warning",
            message,
        });
    }
    let mut conditions = workload["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == type_)?;
    Some(OperatorCondition {
        type_,
        is_true: false,
        reason: "Resolved",
        message: "there is nothing to report any more".to_owned(),
    })
}
