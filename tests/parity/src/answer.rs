//! What was said of a candidate, and where two answers differ.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use shared_validation::{Layer, ValidationResult};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    /// The type of the error, as in `details.causes[].reason`.
    pub reason: String,
    /// Where it is.
    pub field: String,
    /// The message.
    pub message: String,
}

/// What was said of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether it stands.
    pub valid: bool,
    /// The HTTP status; 422 where each cause is named.
    pub code: u16,
    /// What is wrong.
    #[serde(default)]
    pub causes: Vec<Cause>,
}

impl Answer {
    /// What the engine's verdict says. The causes of the structural layer carry no message: its wording
    /// may differ.
    #[must_use]
    pub fn of_verdict(verdict: &ValidationResult) -> Self {
        let causes = verdict.errors.iter().map(|violation| Cause {
            reason: violation.error.error_type.as_str().to_owned(),
            field: violation.error.path.to_string(),
            message: match violation.layer {
                Layer::Schema => String::new(),
                _ => violation.error.body(),
            },
        });
        Self {
            valid: verdict.is_valid(),
            code: if verdict.is_valid() { 200 } else { 422 },
            causes: causes.collect(),
        }
    }

    /// The causes that count: not the API server's remark that it has not looked at everything.
    fn counted(&self) -> impl Iterator<Item = &Cause> {
        self.causes.iter().filter(|cause| {
            !cause
                .message
                .contains("some validation rules were not checked")
        })
    }
}

/// Where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The engine accepts what the API server refuses.
    WrongAccept,
    /// The engine refuses what the API server accepts.
    WrongRefusal,
    /// Both refuse, for different errors: those of the server alone, those of the engine alone.
    Errors(Vec<(String, String)>, Vec<(String, String)>),
    /// Both refuse for the same errors, of which some say different things.
    Messages(Vec<(String, String)>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongAccept => f.write_str("accepted here, refused by the API server"),
            Self::WrongRefusal => f.write_str("refused here, accepted by the API server"),
            Self::Errors(server, engine) => {
                write!(
                    f,
                    "errors differ: the API server alone {server:?}, here alone {engine:?}"
                )
            }
            Self::Messages(pairs) => write!(f, "messages differ: {pairs:?}"),
        }
    }
}

/// Compares what the API server says with what the engine says.
///
/// Equal must be: the verdict; type and path of every error of a refusal that names them; and the
/// message of errors that are not structural. A refusal while decoding (400) names no field.
#[must_use]
pub fn compare(server: &Answer, engine: &Answer) -> Option<Difference> {
    match (server.valid, engine.valid) {
        (false, true) => return Some(Difference::WrongAccept),
        (true, false) => return Some(Difference::WrongRefusal),
        (true, true) => return None,
        (false, false) if server.code != 422 => return None,
        (false, false) => {}
    }
    let essences = |answer: &Answer| -> BTreeSet<(String, String)> {
        let essence = |cause: &Cause| (cause.reason.clone(), cause.field.clone());
        answer.counted().map(essence).collect()
    };
    let (theirs, ours) = (essences(server), essences(engine));
    if theirs != ours {
        let alone = |a: &BTreeSet<_>, b: &BTreeSet<_>| a.difference(b).cloned().collect();
        return Some(Difference::Errors(
            alone(&theirs, &ours),
            alone(&ours, &theirs),
        ));
    }
    let unsaid = engine.counted().filter(|own| !own.message.is_empty());
    let differing: Vec<_> = unsaid
        .filter(|own| {
            !server
                .counted()
                .any(|other| other.field == own.field && other.message == own.message)
        })
        .map(|own| {
            let others = server.counted().filter(|other| other.field == own.field);
            let said: Vec<_> = others.map(|other| other.message.as_str()).collect();
            (said.join(" / "), own.message.clone())
        })
        .collect();
    (!differing.is_empty()).then_some(Difference::Messages(differing))
}
