//! Conditions, as the Kubernetes API conventions define them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockstep_shared_validation::{MAX_MESSAGE_BYTES, shortened};
use serde::Deserialize;
use serde_json::{Value, json};

/// Sets one condition of a status.
///
/// # Guarantees
///
/// `lastTransitionTime` changes only when `status` does; conditions of other types do not change.
pub(crate) fn set(
    status: &mut Value,
    type_: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let unchanged_since = find(status, type_)
        .filter(|condition| condition["status"] == word(holds))
        .map(|condition| condition["lastTransitionTime"].clone())
        .filter(|time| serde_json::from_value::<Time>(time.clone()).is_ok());
    let condition = json!({
        "type": type_,
        "status": word(holds),
        "reason": reason,
        "message": shortened(message, MAX_MESSAGE_BYTES),
        "observedGeneration": generation,
        "lastTransitionTime": unchanged_since.unwrap_or_else(|| json!(Time(now))),
    });
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let conditions = status["conditions"].as_array_mut();
    let conditions = conditions.expect("`conditions` was just made an array");
    match conditions.iter_mut().find(|it| it["type"] == type_) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
}

/// Removes entries that are not valid conditions: the API server would reject them.
pub(crate) fn normalize(status: &mut Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.retain(|condition| Condition::deserialize(condition).is_ok());
    }
}

/// Removes a condition, if it exists.
pub(crate) fn remove(status: &mut Value, type_: &str) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.retain(|condition| condition["type"] != type_);
    }
}

/// Returns true if a status has a condition with this value.
pub(crate) fn has_status(status: &Value, type_: &str, holds: bool) -> bool {
    find(status, type_).is_some_and(|condition| condition["status"] == word(holds))
}

/// Returns whether a condition is true, and its message, if it was set for this generation.
pub(crate) fn get<'a>(status: &'a Value, type_: &str, generation: i64) -> Option<(bool, &'a str)> {
    let condition = find(status, type_)?;
    let is_of_now = condition["observedGeneration"] == generation;
    let message = condition["message"].as_str().filter(|_| is_of_now)?;
    Some((condition["status"] == word(true), message))
}

fn find<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    let mut conditions = status.get("conditions")?.as_array()?.iter();
    conditions.find(|condition| condition["type"] == type_)
}

fn word(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
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
        let ready = json!({
            "type": "Ready", "status": "False", "reason": "Modifying", "message": "wait more",
            "observedGeneration": 2, "lastTransitionTime": "1970-01-01T00:00:10Z",
        });
        assert_eq!(status["conditions"], json!([ready]));
        assert!(has_status(&status, "Ready", false) && !has_status(&status, "Ready", true));
        set(&mut status, "Ready", true, "Available", "", 2, at(30));
        let time = "/conditions/0/lastTransitionTime";
        assert_eq!(status.pointer(time), Some(&json!("1970-01-01T00:00:30Z")));
        set(&mut status, "Valid", true, "Valid", "", 2, at(40));
        remove(&mut status, "Ready");
        remove(&mut status, "Ready");
        assert!(!has_status(&status, "Ready", true) && has_status(&status, "Valid", true));
    }

    #[test]
    fn the_length_of_a_message_is_limited_in_bytes() {
        let mut status = json!({});
        let long = "😀".repeat(MAX_MESSAGE_BYTES);
        set(&mut status, "Ready", false, "Creating", &long, 1, at(10));
        let message = status["conditions"][0]["message"].as_str();
        let message = message.expect("a message");
        assert!(message.len() <= MAX_MESSAGE_BYTES, "{}", message.len());
        assert!(message.ends_with("😀…"));
    }

    #[test]
    fn an_invalid_list_of_conditions_is_replaced() {
        for mut status in [json!({"conditions": "none"}), json!({"conditions": null})] {
            set(&mut status, "Ready", true, "Available", "", 1, at(10));
            assert!(has_status(&status, "Ready", true), "{status}");
        }
        let odd = json!({
            "type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": "soon",
        });
        let mut status = json!({"conditions": [7, {"type": "Valid"}, odd]});
        set(&mut status, "Ready", true, "Available", "", 1, at(10));
        let time = "/conditions/2/lastTransitionTime";
        assert_eq!(status.pointer(time), Some(&json!("1970-01-01T00:00:10Z")));
        normalize(&mut status);
        set(&mut status, "Ready", true, "Available", "", 1, at(10));
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Available", "message": "",
            "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:00:10Z",
        });
        assert_eq!(status, json!({"conditions": [ready]}));
    }
}
