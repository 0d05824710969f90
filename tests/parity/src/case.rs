//! A candidate as text, and what was said of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared_validation::{ParsedJson, ValidationRequest, Validator};

use crate::answer::Answer;

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object replaces `old`.
    Update,
}

/// One candidate. The objects are raw JSON text, because what is wrong may be in the text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// What the case is called.
    pub id: String,
    /// What is done.
    pub op: Operation,
    /// The object.
    pub object: String,
    /// The object that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// What the API server said, if it was asked.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

impl Case {
    /// A new object.
    #[must_use]
    pub fn create(id: impl Into<String>, object: &Value) -> Self {
        Self {
            id: id.into(),
            op: Operation::Create,
            object: object.to_string(),
            old: None,
            answer: None,
        }
    }

    /// An object that replaces another.
    #[must_use]
    pub fn update(id: impl Into<String>, object: &Value, old: &Value) -> Self {
        Self {
            op: Operation::Update,
            old: Some(old.to_string()),
            ..Self::create(id, object)
        }
    }

    /// What the engine says.
    ///
    /// # Errors
    ///
    /// When a text is not JSON.
    pub fn judge(&self, judge: &dyn Validator) -> Result<Answer, serde_json::Error> {
        let object = ParsedJson::parse(&self.object)?;
        let old = self
            .old
            .as_deref()
            .map(serde_json::from_str::<Value>)
            .transpose()?;
        let candidate = match &old {
            Some(old) => ValidationRequest::update(&object.value, old),
            None => ValidationRequest::create(&object.value),
        };
        let verdict = judge.validate(
            &candidate
                .deny_unknown_fields()
                .with_duplicate_keys(&object.duplicate_keys),
        );
        Ok(Answer::of_verdict(&verdict))
    }
}
