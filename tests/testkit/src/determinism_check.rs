//! Determinism check for handlers.

use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, ReconcileError, SyncHandler, SyncRequest, SyncResponse,
};

/// Calls a handler twice and fails if the two responses differ: a response that changes on every call would cause a
/// write on every reconciliation.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use lockstep_controller::{ReconcileError, SyncHandler, SyncRequest, SyncResponse};
/// use lockstep_test::DeterminismCheck;
/// use serde_json::json;
///
/// let calls = AtomicU32::new(0);
/// let handler = move |_: &SyncRequest<'_, ()>| -> Result<SyncResponse, ReconcileError> {
///     SyncResponse::new().status(&json!({"calls": calls.fetch_add(1, Ordering::Relaxed)}))
/// };
/// let object = json!({});
/// let result = DeterminismCheck(handler).sync(&SyncRequest::of(&(), &object));
/// assert_eq!(result.expect_err("the status changes").reason(), "Unstable");
/// ```
pub struct DeterminismCheck<H>(pub H);

impl<K: 'static, H: SyncHandler<K>> SyncHandler<K> for DeterminismCheck<H> {
    fn sync(&self, request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
        let (first, second) = (self.0.sync(request)?, self.0.sync(request)?);
        if first == second {
            return Ok(first);
        }
        Err(ReconcileError::Permanent {
            reason: "Unstable",
            message: format!(
                "the handler is not deterministic: two calls with the same request returned {first:?} and {second:?}"
            ),
        })
    }

    fn finalize(&self, deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        self.0.finalize(deleted)
    }
}
