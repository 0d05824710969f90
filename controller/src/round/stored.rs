//! An object as a round found it, with all that it is judged by.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;

use serde_json::Value;
use shared_validation::{LastValidated, Policy, ValidationRequest, ValidationResult, Validator};
use tokio::task::JoinSet;
use tracing::Span;

/// The object, and what is known of how it was judged.
pub(super) struct Stored {
    pub(super) object: Value,
    pub(super) accepted: Option<LastValidated>,
    pub(super) generation: i64,
    /// What is in force for the whole round, whatever comes meanwhile: what is told of a verdict must be told of
    /// what it was made under.
    pub(super) policy: Arc<Policy>,
}

impl Stored {
    /// The object among others, as it is judged.
    pub(super) fn request<'a>(&'a self, others: &'a Value) -> ValidationRequest<'a> {
        let accepted = self.accepted.as_ref();
        let candidate = if accepted.is_some_and(|it| it.generation == self.generation) {
            // What has been accepted stays accepted: a stricter rule of a later release warns.
            ValidationRequest::update(&self.object, &self.object)
        } else {
            ValidationRequest::create(&self.object)
        };
        let candidate = candidate.with_last_validated(accepted);
        candidate.with_policy(&self.policy).with_related(others)
    }

    /// Judges it on a thread of its own: rules may take their time over one object, and the loop goes on with others.
    /// A round that is given up takes one with it that has not begun.
    pub(super) async fn validate(
        self: &Arc<Self>,
        ruleset: &Arc<dyn Validator>,
        others: &Arc<Value>,
    ) -> ValidationResult {
        let (stored, ruleset, others) = (Arc::clone(self), Arc::clone(ruleset), Arc::clone(others));
        let span = Span::current();
        let mut judging = JoinSet::new();
        judging
            .spawn_blocking(move || span.in_scope(|| ruleset.validate(&stored.request(&others))));
        match judging.join_next().await {
            Some(Ok(verdict)) => verdict,
            Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
            // The process ends, and this round with it.
            _ => pending().await,
        }
    }
}
