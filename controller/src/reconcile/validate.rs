//! Object as it was read for a reconciliation, with the input of its validation.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep_shared_validation::{
    LastValidated, Policy, ValidationRequest, ValidationResult, Validator,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::Span;

use crate::cache::store::CompressedObject;

/// Longest validation that may delay the other tasks of a thread. To run it on another thread takes a tenth of that.
const QUICK: Duration = Duration::from_micros(500);

/// The object and the input of its validation.
pub(crate) struct Stored {
    pub(crate) object: Value,
    pub(crate) last_validated: Option<LastValidated>,
    pub(crate) generation: i64,
    /// Policy for the whole reconciliation, even if it changes in between: a validation result must be reported
    /// under the policy that it was computed with.
    pub(crate) policy: Arc<Policy>,
    /// The object in the cache, if it comes from there.
    pub(crate) cached: Option<Arc<CompressedObject>>,
}

impl Stored {
    /// Returns the validation request for the object among others.
    pub(crate) fn request<'a>(&'a self, others: &'a Value) -> ValidationRequest<'a> {
        let last_validated = self.last_validated.as_ref();
        let request = if last_validated.is_some_and(|it| it.generation == self.generation) {
            // Ratcheting: an object that was valid before gets warnings for a stricter rule of a later release.
            ValidationRequest::update(&self.object, &self.object)
        } else {
            ValidationRequest::create(&self.object)
        };
        let request = request.with_last_validated(last_validated);
        request.with_policy(&self.policy).with_related(others)
    }

    /// Validates the object: on a thread of its own, since a rule may take long and the controller must not wait for it, unless
    /// the last validation of the object in this state was quick. If the reconciliation is dropped, a validation that has not
    /// started is cancelled.
    pub(crate) async fn validate(
        self: &Arc<Self>,
        ruleset: &Arc<dyn Validator>,
        others: &Arc<Value>,
    ) -> ValidationResult {
        let cached = self.cached.as_ref();
        if cached.is_some_and(|cached| cached.is_quickly_validated()) {
            return self.validate_here(&**ruleset, others);
        }
        let (stored, ruleset, others) = (Arc::clone(self), Arc::clone(ruleset), Arc::clone(others));
        let span = Span::current();
        let mut validations = JoinSet::new();
        validations
            .spawn_blocking(move || span.in_scope(|| stored.validate_here(&*ruleset, &others)));
        match validations.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
            // The process is ending, and this reconciliation with it.
            _ => pending().await,
        }
    }

    fn validate_here(&self, ruleset: &dyn Validator, others: &Value) -> ValidationResult {
        let started = Instant::now();
        let result = ruleset.validate(&self.request(others));
        if let Some(cached) = &self.cached {
            cached.set_quickly_validated(started.elapsed() < QUICK);
        }
        result
    }
}
