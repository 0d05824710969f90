//! Errors of AWS calls, and whether a call was executed or can succeed later.

use aws_sdk_rds::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_rds::operation::RequestId;
use lockstep_controller::ReconcileError;

/// Error of a call to RDS or STS.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    code: Option<String>,
    /// HTTP status of the response. `None` without a response.
    status: Option<u16>,
    pub(crate) message: String,
}

impl CallError {
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Creates an error for a call without a response of RDS.
    pub(crate) fn without_response(message: &str) -> Self {
        Self {
            code: None,
            status: None,
            message: message.to_owned(),
        }
    }

    /// Returns true if RDS has rejected the call, so that it was not executed. A call without a response may have been
    /// executed, and so may a call that RDS rejects because it is a repetition.
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

    /// Returns true if the same call cannot succeed until a user changes the object, the quota, or the permissions of
    /// the operator.
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
        let message = format!("RDS: {}", error.text());
        if error.is_permanent() {
            Self::Permanent {
                reason: "RejectedByRds",
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
            // Without a response of RDS, the chain of causes contains the reason.
            None => DisplayErrorContext(&error).to_string(),
        };
        Self {
            code: error.code().map(String::from),
            status: error
                .raw_response()
                .map(|response| response.status().as_u16()),
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_call_is_distinguished_from_one_that_may_have_been_executed() {
        let is_rejection = |code: Option<&str>, status: Option<u16>| {
            let error = CallError {
                code: code.map(String::from),
                status,
                message: String::new(),
            };
            error.is_rejected()
        };
        assert!(is_rejection(Some("DBSubnetGroupNotFoundFault"), Some(404)));
        assert!(is_rejection(Some("AccessDenied"), Some(403)));
        assert!(!is_rejection(Some("DBInstanceAlreadyExists"), Some(400)));
        assert!(!is_rejection(Some("Throttling"), Some(400)));
        assert!(!is_rejection(Some("InternalFailure"), Some(500)));
        assert!(!is_rejection(None, None), "the response was lost");
    }
}
