//! A handler whose errors are part of its status.

use serde::Serialize;
use serde_json::Value;

use crate::handler::{SyncHandler, SyncResponse};
use crate::reconcile::{FinalizeOutcome, FinalizeRequest, ReconcileError};
use crate::request::SyncRequest;

/// Says what children are to be, or why it cannot, and turns either into the status of its kind.
///
/// # Expected flow
///
/// [`Failable`] makes a [`Handler`] of one. With an error, no child is changed, and the status that the author
/// makes of the error is written all the same.
pub trait FailableHandler<K>: Send + Sync + 'static {
    /// What can go wrong.
    type Error: std::error::Error + Into<ReconcileError>;
    /// The object's own status fields.
    type Status: Serialize;

    /// What the children are to be.
    fn children(&self, request: &SyncRequest<'_, K>) -> Result<Vec<Value>, Self::Error>;

    /// The status, from what the children are and from what went wrong, if anything did.
    fn status(&self, request: &SyncRequest<'_, K>, error: Option<&Self::Error>) -> Self::Status;

    /// As [`Handler::finalize`].
    fn finalize(&self, _deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

/// A [`FailableHandler`] as a [`Handler`].
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
