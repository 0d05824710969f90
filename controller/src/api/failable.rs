//! Handler whose errors are part of its status.

use serde::Serialize;
use serde_json::Value;

use crate::api::error::ReconcileError;
use crate::api::reconciler::{FinalizeOutcome, FinalizeRequest};
use crate::api::request::SyncRequest;
use crate::api::sync::{SyncHandler, SyncResponse};

/// Computes the children or an error, and a status from either.
///
/// # Expected flow
///
/// [`Failable`] turns it into a [`SyncHandler`]. If there is an error, no child is changed, but the status that the
/// author computes from the error is written.
pub trait FailableHandler<K>: Send + Sync + 'static {
    /// Error type of the operator.
    type Error: std::error::Error + Into<ReconcileError>;
    /// The operator's own status fields.
    type Status: Serialize;

    /// Returns the desired children.
    fn children(&self, request: &SyncRequest<'_, K>) -> Result<Vec<Value>, Self::Error>;

    /// Returns the status, computed from the children and from the error, if there is one.
    fn status(&self, request: &SyncRequest<'_, K>, error: Option<&Self::Error>) -> Self::Status;

    /// Does the same as [`SyncHandler::finalize`].
    fn finalize(&self, _deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

/// A [`FailableHandler`] as a [`SyncHandler`].
pub struct Failable<H>(pub H);

impl<K: 'static, H: FailableHandler<K>> SyncHandler<K> for Failable<H> {
    fn sync(&self, request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
        let children = self.0.children(request);
        let status = self.0.status(request, children.as_ref().err());
        let response = SyncResponse::new().status(&status)?;
        match children {
            Ok(children) => children.iter().try_fold(response, SyncResponse::child),
            Err(error) => Ok(response.failed(error.into())),
        }
    }

    fn finalize(&self, deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        self.0.finalize(deleted)
    }
}
