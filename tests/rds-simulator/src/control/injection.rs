//! Faults that a test injects into calls.

use std::time::Duration;

use serde_json::Value;

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

/// Faults that wait for calls, and parameters that are refused.
#[derive(Debug, Default)]
pub(crate) struct Injections {
    waiting: Vec<(String, Disturbance, usize)>,
    refused: Vec<(String, String, Fault)>,
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
