//! Errors of calls to AWS, and their meaning for the caller.

use aws_sdk_rds::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_rds::operation::RequestId;
use controller::ReconcileError;

/// The error of a call to RDS, or of one to STS.
#[derive(Debug)]
pub(crate) struct CallError {
    code: Option<String>,
    /// The HTTP status of the answer; none if there was no answer.
    status: Option<u16>,
    pub(crate) message: String,
}

impl CallError {
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// An error without an answer of RDS.
    pub(crate) fn without_answer(message: &str) -> Self {
        Self {
            code: None,
            status: None,
            message: message.to_owned(),
        }
    }

    /// Returns whether RDS has refused the call, so that it has not been carried out. A call without an answer may have
    /// been, and so may one that RDS turns away because it comes again.
    pub(crate) fn is_rejected(&self) -> bool {
        const COMES_AGAIN: &[&str] = &[
            "DBInstanceAlreadyExists",
            "DBSnapshotAlreadyExists",
            "InvalidDBInstanceState",
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
        ];
        let is_turned_away = COMES_AGAIN.iter().any(|code| self.is(code));
        self.status
            .is_some_and(|status| (400..500).contains(&status))
            && !is_turned_away
    }

    /// Returns whether the same call cannot succeed before something is changed: in the object, in the quota,
    /// or in what the operator may do.
    pub(crate) fn is_permanent(&self) -> bool {
        const PERMANENT: &[&str] = &[
            "InvalidParameterValue",
            "InvalidParameterCombination",
            "InvalidVPCNetworkStateFault",
            "StorageTypeNotSupported",
        ];
        self.code
            .as_deref()
            .is_some_and(|code| PERMANENT.contains(&code))
    }
}

impl From<CallError> for ReconcileError {
    fn from(error: CallError) -> Self {
        let message = match &error.code {
            Some(code) => format!("RDS: {code}: {}", error.message),
            None => format!("RDS: {}", error.message),
        };
        if error.is_permanent() {
            Self::Permanent {
                reason: "RefusedByRds",
                message,
            }
        } else {
            Self::Transient {
                reason: "RdsCallFailed",
                message,
            }
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
            // No answer from RDS at all: the chain of causes says why.
            None => DisplayErrorContext(&error).to_string(),
        };
        Self {
            code: error.code().map(String::from),
            status: error.raw_response().map(|answer| answer.status().as_u16()),
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_from_a_call_that_may_have_been_carried_out() {
        let is_refusal = |code: Option<&str>, status: Option<u16>| {
            let error = CallError {
                code: code.map(String::from),
                status,
                message: String::new(),
            };
            error.is_rejected()
        };
        assert!(is_refusal(Some("DBSubnetGroupNotFoundFault"), Some(404)));
        assert!(is_refusal(Some("AccessDenied"), Some(403)));
        assert!(!is_refusal(Some("DBInstanceAlreadyExists"), Some(400)));
        assert!(!is_refusal(Some("Throttling"), Some(400)));
        assert!(!is_refusal(Some("InternalFailure"), Some(500)));
        assert!(!is_refusal(None, None), "the answer was lost");
    }
}
