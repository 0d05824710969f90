//! Faults that a test injects into calls.

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Fault of a call.
#[derive(Clone, Debug)]
pub enum Disturbance {
    /// The call is not carried out, and the client receives an error with a code and a message.
    Error(String, String),
    /// The call is carried out, and the connection is closed without an answer.
    LostAnswer,
    /// The connection is closed, and the call is not carried out.
    LostRequest,
    /// The call is carried out, and the answer comes later by this real time.
    Delay(Duration),
    /// The call is answered as if nothing existed of what it describes: with the error that what it names is not found, or
    /// with an empty list.
    Nothing,
    /// The call is answered with an empty list, also if it names what it describes.
    EmptyList,
}

impl Disturbance {
    /// Returns the error of too many calls (`Throttling`, HTTP status 400).
    pub fn throttling() -> Self {
        Self::Error("Throttling".to_owned(), "Rate exceeded".to_owned())
    }

    /// Returns an error inside of RDS (HTTP status 500).
    pub fn internal_failure() -> Self {
        let message =
            "The request processing has failed because of an unknown error, exception or failure.";
        Self::Error("InternalFailure".to_owned(), message.to_owned())
    }

    /// Returns the error of an overloaded service (HTTP status 503).
    pub fn unavailable() -> Self {
        let message = "Service is unable to handle request.";
        Self::Error("ServiceUnavailable".to_owned(), message.to_owned())
    }

    /// Returns the error of missing permissions (HTTP status 403).
    pub fn access_denied(operation: &str) -> Self {
        let message = format!(
            "User: arn:aws:sts::123456789012:user/tests is not authorized to perform: rds:{operation} because no identity-based policy allows the rds:{operation} action"
        );
        Self::Error("AccessDenied".to_owned(), message)
    }
}

/// Calls that describe resources, with the list in their result, the parameter that names one of them, and the error if
/// that is not found.
const DESCRIPTIONS: [(&str, &str, &str, &str); 3] = [
    (
        "DescribeDBInstances",
        "DBInstances",
        "DBInstanceIdentifier",
        "DBInstanceNotFound",
    ),
    (
        "DescribeDBSnapshots",
        "DBSnapshots",
        "DBSnapshotIdentifier",
        "DBSnapshotNotFound",
    ),
    (
        "DescribeDBInstanceAutomatedBackups",
        "DBInstanceAutomatedBackups",
        "DbiResourceId",
        "DBInstanceAutomatedBackupNotFound",
    ),
];

/// Returns true if an operation describes resources that can be missing in its answer.
pub(crate) fn is_description(operation: &str) -> bool {
    DESCRIPTIONS.iter().any(|(name, ..)| *name == operation)
}

/// Returns the answer to a call as if nothing existed.
pub(crate) fn nothing(operation: &str, parameters: &Fields) -> Result<Value, Fault> {
    let mut all = DESCRIPTIONS.iter();
    let (_, list, parameter, code) = all
        .find(|(name, ..)| *name == operation)
        .unwrap_or_else(|| panic!("{operation} describes no resources"));
    match parameters.given_text(parameter) {
        Some(name) => Err(Fault::new(code, format!("{name} not found."))),
        None => Ok(json!({*list: []})),
    }
}

/// Returns the empty list of a call that describes resources.
pub(crate) fn empty_list(operation: &str) -> Value {
    let mut all = DESCRIPTIONS.iter();
    let (_, list, ..) = all
        .find(|(name, ..)| *name == operation)
        .unwrap_or_else(|| panic!("{operation} describes no resources"));
    json!({*list: []})
}

/// Share of the descriptions that show nothing.
#[derive(Debug)]
struct Lapses {
    percentage: u32,
    rng: Rng,
    /// Access key of the callers that get them.
    access_key: String,
}

/// Faults that wait for calls, and parameters that are refused.
#[derive(Debug, Default)]
pub(crate) struct Injections {
    waiting: Vec<(String, Disturbance, usize)>,
    refused: Vec<(String, String, Fault)>,
    lapses: Option<Lapses>,
}

impl Injections {
    /// Adds a fault for the next calls of an operation.
    pub(crate) fn add(&mut self, operation: &str, disturbance: Disturbance, times: usize) {
        self.waiting
            .push((operation.to_owned(), disturbance, times));
    }

    /// Refuses a parameter of an operation until the injections are cleared.
    pub(crate) fn refuse(&mut self, operation: &str, parameter: &str, fault: Fault) {
        let (operation, parameter) = (operation.to_owned(), parameter.to_owned());
        self.refused.push((operation, parameter, fault));
    }

    /// Lets a share of the descriptions show nothing.
    pub(crate) fn set_lapses(&mut self, access_key: &str, percentage: u32, seed: u64) {
        self.lapses = (percentage > 0).then(|| Lapses {
            percentage,
            rng: Rng::with_seed(seed),
            access_key: access_key.to_owned(),
        });
    }

    /// Returns true if this description shows nothing.
    pub(crate) fn lapses(&mut self, operation: &str, access_key: &str) -> bool {
        is_description(operation)
            && self
                .lapses
                .as_mut()
                .is_some_and(|it| it.access_key == access_key && it.rng.u32(..100) < it.percentage)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes the fault of a call.
    pub(crate) fn take(&mut self, operation: &str) -> Option<Disturbance> {
        let mut waiting = self.waiting.iter_mut();
        let found = waiting.find(|(name, _, times)| name == operation && *times > 0)?;
        found.2 -= 1;
        Some(found.1.clone())
    }

    /// Returns the error of a call with a refused parameter.
    pub(crate) fn refusal(&self, operation: &str, parameters: &Fields) -> Option<&Fault> {
        let mut refused = self.refused.iter();
        let found = refused.find(|(name, parameter, _)| {
            name == operation
                && parameters
                    .get(parameter)
                    .is_some_and(|it| *it != Value::Null)
        });
        found.map(|(_, _, fault)| fault)
    }
}
