//! A handler that is asked twice.

use controller::{
    FinalizeOutcome, FinalizeRequest, ReconcileError, SyncHandler, SyncRequest, SyncResponse,
};

/// Asks a handler twice and refuses two answers: an answer that differs each time would be written each time.
pub struct Twice<H>(pub H);

impl<K: 'static, H: SyncHandler<K>> SyncHandler<K> for Twice<H> {
    fn sync(&self, request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
        let (first, second) = (self.0.sync(request)?, self.0.sync(request)?);
        if first == second {
            return Ok(first);
        }
        Err(ReconcileError::Permanent {
            reason: "Unstable",
            message: format!("asked twice, the handler says {first:?} and {second:?}"),
        })
    }

    fn finalize(&self, deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        self.0.finalize(deleted)
    }
}
