//! Errors of AWS calls, and whether a call was executed or can succeed later.

use std::error::Error;
use std::time::Duration;

use aws_sdk_rds::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_rds::operation::RequestId;
use aws_sdk_sts::operation::assume_role::AssumeRoleError;
use lockstep_controller::ReconcileError;

use crate::aws::error_code::{self, Class};
use crate::aws::rds_client::attempts::Attempts;

/// Time after which a call is repeated that RDS has rejected for a reason outside of the object, such as a quota or a
/// missing permission.
pub(crate) const OTHERS_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// Reason of the error that STS denies a role to the controller.
pub(crate) const ROLE_NOT_ASSUMED: &str = "RoleNotAssumed";

/// Error of a call to RDS, STS or SQS.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    /// True if STS has denied the role whose credentials the call needs. It was not sent then.
    is_role_denied: bool,
    code: Option<String>,
    /// HTTP status of the response. `None` without a response.
    status: Option<u16>,
    may_be_done: bool,
    pub(crate) message: String,
}

impl CallError {
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Creates an error for a call that was not sent.
    pub(crate) fn not_sent(message: &str) -> Self {
        Self {
            may_be_done: false,
            ..Self::without_response(&format!("not sent: {message}"))
        }
    }

    /// Creates an error for a call without a response of RDS.
    pub(crate) fn without_response(message: &str) -> Self {
        Self {
            is_role_denied: false,
            code: None,
            status: None,
            may_be_done: true,
            message: message.to_owned(),
        }
    }

    /// Creates the error of an answer of RDS.
    #[cfg(test)]
    pub(crate) fn answered(code: Option<&str>, status: Option<u16>, may_be_done: bool) -> Self {
        Self {
            code: code.map(String::from),
            status,
            may_be_done,
            ..Self::without_response("")
        }
    }

    /// Adds what is known about the attempts of the call.
    pub(crate) fn after<E>(self, attempts: &Attempts<E>) -> Self {
        Self {
            may_be_done: attempts.may_be_done(),
            ..self
        }
    }

    /// Returns true unless it is certain that no attempt of the call was carried out. A rejection of the last attempt says
    /// nothing about those before it, and can be the effect of one.
    pub(crate) fn may_be_done(&self) -> bool {
        self.may_be_done
    }

    /// Returns what the error means for the next attempt.
    pub(crate) fn class(&self) -> Class {
        if self.is_role_denied {
            return Class::Access;
        }
        error_code::class(self.code.as_deref(), self.status)
    }

    /// Returns true if RDS has rejected the call, so that it was not executed. A call without a response may have been
    /// executed, and so may a call that RDS rejects because it is a repetition.
    pub(crate) fn is_rejected(&self) -> bool {
        matches!(self.class(), Class::Object | Class::Outside | Class::Access)
    }

    /// Returns the code of a refusal for a reason outside of the object, which can concern other objects as well.
    pub(crate) fn code_of_refusal(&self) -> Option<&str> {
        match self.class() {
            Class::Access if self.is_role_denied => Some(ROLE_NOT_ASSUMED),
            Class::Access | Class::Outside => self.code.as_deref(),
            _ => None,
        }
    }

    /// Returns true if RDS accepts the call when a resource has another state.
    pub(crate) fn is_busy(&self) -> bool {
        self.class() == Class::Busy
    }

    /// Returns the code and the message.
    pub(crate) fn text(&self) -> String {
        match &self.code {
            Some(code) => format!("{code}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns true if RDS has rejected a change of the storage because of the previous one. There is no error code for
    /// it.
    pub(crate) fn is_storage_cooldown(&self) -> bool {
        const WORDS: &[&str] = &[
            "previous storage change",
            "storage optimization",
            "storage-optimization",
            "6 hours",
            "six hours",
        ];
        self.is("InvalidParameterCombination") && {
            let message = self.message.to_lowercase();
            WORDS.iter().any(|words| message.contains(words))
        }
    }
}

impl From<CallError> for ReconcileError {
    fn from(error: CallError) -> Self {
        let mut message = format!("RDS: {}", error.text());
        let reason = match error.class() {
            Class::Access if error.is_role_denied => {
                message = format!(
                    "STS denies the role of the object to the controller; RDS was not called. The trust policy of the role must name the controller's role, and the external ID of the Namespace, which is its UID unless an annotation sets it: {}",
                    error.message
                );
                ROLE_NOT_ASSUMED
            }
            Class::Object | Class::Outside => "RejectedByRds",
            Class::Access => "AccessDenied",
            Class::Busy | Class::Unavailable | Class::Repeated => {
                return Self::Transient {
                    reason: "RdsCallFailed",
                    message,
                };
            }
        };
        let rejected = Self::Permanent { reason, message };
        if error.class() == Class::Object {
            return rejected;
        }
        Self::RequeueAfter {
            after: OTHERS_AGAIN_AFTER,
            error: Box::new(rejected),
        }
    }
}

impl<E> From<SdkError<E>> for CallError
where
    SdkError<E>: ProvideErrorMetadata + RequestId + std::error::Error + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        let message = match error.message() {
            Some(message) => message.to_owned(),
            // Without a response of RDS, the chain of causes contains the reason.
            None => DisplayErrorContext(&error).to_string(),
        };
        Self {
            is_role_denied: is_role_denied(&error),
            code: error.code().map(String::from),
            status: error
                .raw_response()
                .map(|response| response.status().as_u16()),
            may_be_done: true,
            message,
        }
    }
}

/// Returns true if STS has denied to assume a role: the role does not exist, its trust policy demands another principal or
/// external ID, or the policy of the controller does not allow it. STS does not tell which.
fn is_role_denied(error: &(dyn Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    let mut assumptions = chain.filter_map(|it| it.downcast_ref::<SdkError<AssumeRoleError>>());
    assumptions.any(|error| error.code() == Some("AccessDenied"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_call_is_distinguished_from_one_that_may_have_been_executed() {
        let is_rejection = |code: Option<&str>, status: Option<u16>| {
            CallError::answered(code, status, true).is_rejected()
        };
        assert!(is_rejection(Some("InvalidParameterValue"), Some(400)));
        assert!(is_rejection(Some("DBSubnetGroupNotFoundFault"), Some(404)));
        assert!(is_rejection(Some("AccessDenied"), Some(403)));
        assert!(!is_rejection(Some("DBInstanceAlreadyExists"), Some(400)));
        assert!(!is_rejection(Some("InvalidDBSnapshotState"), Some(400)));
        assert!(!is_rejection(Some("Throttling"), Some(400)));
        assert!(!is_rejection(Some("InternalFailure"), Some(500)));
        assert!(!is_rejection(None, None), "the response was lost");
    }
}
