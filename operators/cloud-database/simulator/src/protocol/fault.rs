//! Errors that the simulated services answer.

use crate::model::Model;

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Code, as clients receive it.
    pub code: String,
    /// Message.
    pub message: String,
}

/// Errors that every operation can answer, with their HTTP statuses (Amazon RDS API Reference, Common Errors; in
/// addition those that RDS answers to requests that it does not attribute to an operation).
pub const COMMON_ERRORS: &[(&str, u16)] = &[
    ("AccessDenied", 403),
    ("ExpiredToken", 403),
    ("IncompleteSignature", 400),
    ("InternalFailure", 500),
    ("InvalidAction", 400),
    ("InvalidClientTokenId", 403),
    ("InvalidParameterCombination", 400),
    ("InvalidParameterValue", 400),
    ("MissingAction", 400),
    ("MissingAuthenticationToken", 403),
    ("MissingParameter", 400),
    ("OptInRequired", 403),
    ("RequestExpired", 400),
    ("RequestLimitExceeded", 503),
    ("ServiceUnavailable", 503),
    ("SignatureDoesNotMatch", 403),
    ("Throttling", 400),
    ("ThrottlingException", 400),
    ("ValidationError", 400),
];

impl Fault {
    /// Creates an error.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// Creates an error for a value that is not allowed.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterValue", message)
    }

    /// Creates an error for values that are not allowed together.
    pub(crate) fn combination(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterCombination", message)
    }

    /// Creates an error for a required parameter that the request does not contain.
    pub(crate) fn missing(parameter: &str) -> Self {
        let message = format!("The request must contain the parameter {parameter}");
        Self::new("MissingParameter", message)
    }

    /// Returns the HTTP status of the error as an answer of an operation, or `None` if neither the operation nor the
    /// service documents it.
    pub(crate) fn status(&self, model: &Model, operation: &str) -> Option<u16> {
        let common = COMMON_ERRORS.iter().find(|(code, _)| *code == self.code);
        if let Some((_, status)) = common {
            return Some(*status);
        }
        let documented = &model.operations.get(operation)?.errors;
        let is_documented = documented.contains(&self.code);
        model
            .errors
            .get(&self.code)
            .copied()
            .filter(|_| is_documented)
    }
}
