//! Conditions, by the API conventions.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::Value;

/// The API server's limit for a condition's message.
const MAX_MESSAGE_CHARS: usize = 32_768;

/// Sets one condition in a status.
///
/// # Guarantees
///
/// `lastTransitionTime` moves only when `status` does; conditions of other types stay.
pub(crate) fn set(
    status: &mut Value,
    type_: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let mut conditions = read(status);
    let holds = if holds { "True" } else { "False" };
    let unchanged_since = conditions
        .iter()
        .find(|c| c.type_ == type_ && c.status == holds)
        .map(|c| c.last_transition_time.clone());
    let condition = Condition {
        type_: type_.to_owned(),
        status: holds.to_owned(),
        reason: reason.to_owned(),
        message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
        observed_generation: Some(generation),
        last_transition_time: unchanged_since.unwrap_or(Time(now)),
    };
    match conditions.iter_mut().find(|c| c.type_ == type_) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
    status["conditions"] = serde_json::to_value(conditions).expect("conditions are JSON");
}

/// Removes a condition, if it is there.
pub(crate) fn remove(status: &mut Value, type_: &str) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.retain(|condition| condition["type"] != type_);
    }
}

/// The conditions of a status; unreadable ones count as absent.
pub(crate) fn read(status: &Value) -> Vec<Condition> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions
        .filter_map(|condition| serde_json::from_value(condition.clone()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let mut status = json!({});
        set(&mut status, "Ready", false, "Creating", "wait", 1, at(10));
        set(
            &mut status,
            "Ready",
            false,
            "Modifying",
            "wait more",
            2,
            at(20),
        );
        let ready = read(&status).remove(0);
        assert_eq!(
            (
                ready.reason.as_str(),
                ready.observed_generation,
                ready.last_transition_time.0
            ),
            ("Modifying", Some(2), at(10))
        );
        set(&mut status, "Ready", true, "Available", "", 2, at(30));
        assert_eq!(read(&status).remove(0).last_transition_time.0, at(30));
        set(&mut status, "Valid", true, "Valid", "", 2, at(40));
        assert_eq!(read(&status).len(), 2);
        remove(&mut status, "Ready");
        remove(&mut status, "Ready");
        assert_eq!(read(&status).remove(0).type_, "Valid");
    }
}
