//! Validation request as text, with the response of the API server.

use lockstep_shared_validation::{ParsedJson, ValidationRequest, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::response::Response;

/// Operation on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object replaces `oldObject`.
    Update,
}

/// Validation request. The objects are raw JSON text, because the text itself may contain the error.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Name of the case.
    pub id: String,
    /// Operation.
    pub operation: Operation,
    /// New object.
    pub object: String,
    /// Old object of an update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_object: Option<String>,
    /// Response of the API server, if it has been recorded.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
}

impl Case {
    /// Returns a request that creates an object.
    #[must_use]
    pub fn create(id: impl Into<String>, object: &Value) -> Self {
        Self {
            id: id.into(),
            operation: Operation::Create,
            object: object.to_string(),
            old_object: None,
            response: None,
        }
    }

    /// Returns a request that replaces an object.
    #[must_use]
    pub fn update(id: impl Into<String>, object: &Value, old: &Value) -> Self {
        Self {
            operation: Operation::Update,
            old_object: Some(old.to_string()),
            ..Self::create(id, object)
        }
    }

    /// Returns the response of the rules engine.
    ///
    /// # Errors
    ///
    /// If a text is not JSON.
    pub fn validate(&self, validator: &dyn Validator) -> Result<Response, serde_json::Error> {
        let object = ParsedJson::parse(&self.object)?;
        let old = self
            .old_object
            .as_deref()
            .map(serde_json::from_str::<Value>)
            .transpose()?;
        let request = match &old {
            Some(old) => ValidationRequest::update(&object.value, old),
            None => ValidationRequest::create(&object.value),
        };
        let result = validator.validate(
            &request
                .deny_unknown_fields()
                .with_duplicate_keys(&object.duplicate_keys),
        );
        Ok(Response::of_result(&result))
    }
}
