//! Response to a validation request, and the differences between two responses.

use std::collections::BTreeSet;
use std::fmt;

use lockstep_shared_validation::{Layer, ValidationResult};
use serde::{Deserialize, Serialize};

/// One validation error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    /// Type of the error, as in `details.causes[].reason`.
    pub reason: String,
    /// Field path of the error.
    pub field: String,
    /// Message of the error.
    pub message: String,
}

/// Response to a validation request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// If true, the object is valid.
    pub valid: bool,
    /// HTTP status. 422 if every cause is listed.
    pub code: u16,
    /// Validation errors.
    #[serde(default)]
    pub causes: Vec<Cause>,
}

impl Response {
    /// Converts a validation result of the engine. The causes of the structural layer have no message, because its
    /// wording may differ.
    #[must_use]
    pub fn of_result(result: &ValidationResult) -> Self {
        let causes = result.errors.iter().map(|violation| Cause {
            reason: violation.error.error_type.as_str().to_owned(),
            field: violation.error.path.to_string(),
            message: match violation.layer {
                Layer::Schema => String::new(),
                _ => violation.error.body(),
            },
        });
        Self {
            valid: result.is_valid(),
            code: if result.is_valid() { 200 } else { 422 },
            causes: causes.collect(),
        }
    }

    /// Returns the causes to compare: without the note of the API server that it has skipped some rules.
    fn counted(&self) -> impl Iterator<Item = &Cause> {
        self.causes.iter().filter(|cause| {
            !cause
                .message
                .contains("some validation rules were not checked")
        })
    }
}

/// Difference between two responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The engine accepts what the API server rejects.
    WrongAccept,
    /// The engine rejects what the API server accepts.
    WrongReject,
    /// Both reject, with different errors: the errors of the API server only, and those of the engine only.
    Errors(Vec<(String, String)>, Vec<(String, String)>),
    /// Both reject with the same errors, some of which have different messages.
    Messages(Vec<(String, String)>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongAccept => f.write_str("the engine accepts what the API server rejects"),
            Self::WrongReject => f.write_str("the engine rejects what the API server accepts"),
            Self::Errors(server, engine) => {
                write!(
                    f,
                    "errors differ: only the API server {server:?}, only the engine {engine:?}"
                )
            }
            Self::Messages(pairs) => write!(f, "messages differ: {pairs:?}"),
        }
    }
}

/// Compares the response of the API server with that of the engine.
///
/// The following must be equal: valid or not; the type and path of every error if the response lists the errors; and
/// the message of errors that are not structural. An error during decoding (400) does not name a field.
#[must_use]
pub fn compare(server: &Response, engine: &Response) -> Option<Difference> {
    match (server.valid, engine.valid) {
        (false, true) => return Some(Difference::WrongAccept),
        (true, false) => return Some(Difference::WrongReject),
        (true, true) => return None,
        (false, false) if server.code != 422 => return None,
        (false, false) => {}
    }
    let keys = |response: &Response| -> BTreeSet<(String, String)> {
        let key = |cause: &Cause| (cause.reason.clone(), cause.field.clone());
        response.counted().map(key).collect()
    };
    let (expected, actual) = (keys(server), keys(engine));
    if expected != actual {
        let alone = |a: &BTreeSet<_>, b: &BTreeSet<_>| a.difference(b).cloned().collect();
        return Some(Difference::Errors(
            alone(&expected, &actual),
            alone(&actual, &expected),
        ));
    }
    let with_message = engine.counted().filter(|own| !own.message.is_empty());
    let differing: Vec<_> = with_message
        .filter(|own| {
            !server
                .counted()
                .any(|other| other.field == own.field && other.message == own.message)
        })
        .map(|own| {
            let others = server.counted().filter(|other| other.field == own.field);
            let messages: Vec<_> = others.map(|other| other.message.as_str()).collect();
            (messages.join(" / "), own.message.clone())
        })
        .collect();
    (!differing.is_empty()).then_some(Difference::Messages(differing))
}
