//! Operator's own status fields as a type of the operator.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::api::error::ReconcileError;
use crate::status::patch::OF_THE_RUNTIME;

/// Reads the operator's own fields of a status. Other versions of the operator may have written it, or other clients: what has
/// another type is left out, a field or an element of a list alone, so that it does not hide the others.
///
/// ```
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default)]
/// struct Status {
///     phase: Option<String>,
///     sizes: Vec<u32>,
/// }
///
/// let stored = serde_json::json!({"phase": 1, "sizes": [1, "two", 3]});
/// let status: Status = lockstep_controller::read_status(&stored);
/// assert_eq!((status.phase, status.sizes), (None, vec![1, 3]));
/// ```
#[must_use]
pub fn read_status<S: DeserializeOwned + Default>(status: &Value) -> S {
    // What the operator has written itself is read at once.
    if let Ok(status) = S::deserialize(status) {
        return status;
    }
    let fields = status.as_object().into_iter().flatten();
    let own = fields.filter(|(name, _)| !OF_THE_RUNTIME.contains(&name.as_str()));
    let readable = own.filter_map(|(name, value)| {
        let is_readable = |value: &Value| read::<S>([(name.clone(), value.clone())]).is_ok();
        let value = match value {
            Value::Array(elements) => {
                let elements = elements.iter();
                let readable =
                    elements.filter(|element| is_readable(&Value::Array(vec![(*element).clone()])));
                Value::Array(readable.cloned().collect())
            }
            value => Some(value.clone()).filter(is_readable)?,
        };
        Some((name.clone(), value))
    });
    read(readable).unwrap_or_default()
}

fn read<S: DeserializeOwned>(
    fields: impl IntoIterator<Item = (String, Value)>,
) -> serde_json::Result<S> {
    serde_json::from_value(Value::Object(fields.into_iter().collect()))
}

/// Returns the changes that replace the operator's own fields of a status: a field that only `before` has is removed. What
/// another version of the operator has added stays.
pub fn replace_status<S: Serialize>(
    before: &S,
    after: &S,
) -> Result<Map<String, Value>, ReconcileError> {
    let mut changes = fields(after)?;
    for (name, _) in fields(before)? {
        changes.entry(name).or_insert(Value::Null);
    }
    Ok(changes)
}

fn fields(status: &impl Serialize) -> Result<Map<String, Value>, ReconcileError> {
    let problem = match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => return Ok(fields),
        Ok(_) => "it is no JSON object".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ReconcileError::Permanent {
        reason: "InvalidStatus",
        message: format!("the status cannot be serialized to JSON: {problem}"),
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
    #[serde(default)]
    struct Status {
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sizes: Vec<u32>,
    }

    #[test]
    fn a_field_that_cannot_be_read_does_not_hide_the_others() {
        let read = |status: Value| {
            let status: Status = read_status(&status);
            (status.phase, status.sizes)
        };
        let phase = Some("new".to_owned());
        assert_eq!(read(Value::Null), (None, Vec::new()));
        assert_eq!(read(json!("text")), (None, Vec::new()));
        let whole = json!({"phase": "new", "sizes": [1], "conditions": 7});
        assert_eq!(read(whole), (phase.clone(), vec![1]));
        let other = json!({"phase": "new", "sizes": {"a": 1}, "conditions": []});
        assert_eq!(read(other), (phase.clone(), Vec::new()));
        let elements = json!({"phase": "new", "sizes": [1, -1, null, 2]});
        assert_eq!(read(elements), (phase, vec![1, 2]));
    }

    #[test]
    fn a_field_without_a_value_is_removed_and_those_of_other_versions_stay() {
        let stored = json!({"phase": "old", "sizes": [1], "added": 1, "conditions": []});
        let before: Status = read_status(&stored);
        let after = Status {
            phase: Some("new".to_owned()),
            sizes: Vec::new(),
        };
        let changes = replace_status(&before, &after).expect("changes");
        assert_eq!(
            Value::Object(changes),
            json!({"phase": "new", "sizes": null})
        );
    }
}
