//! Reconciler of the author, observed by chaos.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OperatorCondition, OwnedType, ReconcileError,
    ReconcileOutput, Reconciler, RelatedObjects, SuspendedRequest, SyncRequest, Watch,
};
use lockstep_shared_validation::{ValidationRequest, ValidationResult};
use serde_json::{Map, Value};

use crate::chaos::process_state::ProcessState;
use crate::chaos::violation::{Property, Violation};

/// Factor by which the delays that an operator asks for are shortened.
const ACCELERATION: u32 = 100;

/// Reconciler of the author, observed by chaos. Its delays are a hundredth of those that the author asks for.
pub(crate) struct ObservedReconciler<R> {
    pub(crate) inner: R,
    pub(crate) process: Arc<ProcessState>,
}

impl<R> ObservedReconciler<R> {
    /// Records the end of a step, and what a panic was about.
    fn end<T>(
        &self,
        name: &str,
        ended: Result<T, Box<dyn Any + Send>>,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        match ended {
            Ok(result) => {
                self.process.end(name, &show(&result));
                result
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                let text = text.unwrap_or("a panic without a message").to_owned();
                self.process.end(name, "panic");
                self.process.trial.violate(Violation::new(
                    Property::NoPanics,
                    name,
                    "a step that returns an error",
                    text,
                ));
                resume_unwind(panic)
            }
        }
    }

    fn requested(&self, name: &str, delay: Duration) -> Duration {
        let trial = &self.process.trial;
        trial.record_requested_delay(name, delay.as_millis());
        delay / ACCELERATION
    }

    fn accelerated(&self, name: &str, error: ReconcileError) -> ReconcileError {
        match error {
            ReconcileError::RequeueAfter { after, error } => ReconcileError::RequeueAfter {
                after: self.requested(name, after),
                error,
            },
            ReconcileError::Inconclusive(error) => {
                ReconcileError::Inconclusive(Box::new(self.accelerated(name, *error)))
            }
            error => error,
        }
    }
}

fn name_of(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}

#[async_trait]
impl<R: Reconciler> Reconciler for ObservedReconciler<R> {
    type Kind = R::Kind;

    fn finalizer(&self) -> Option<&'static str> {
        self.inner.finalizer()
    }

    fn owns(&self) -> Vec<OwnedType> {
        self.inner.owns()
    }

    fn watches(&self) -> Vec<Watch> {
        self.inner.watches()
    }

    fn rbac_rules(&self) -> Vec<Value> {
        self.inner.rbac_rules()
    }

    fn initial_status(&self, object: &Value) -> Map<String, Value> {
        self.inner.initial_status(object)
    }

    async fn status_identity(
        &self,
        request: &SyncRequest<'_, Self::Kind>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        self.inner.status_identity(request).await
    }

    fn related_for_validation(
        &self,
        object: &Value,
        related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        self.inner.related_for_validation(object, related)
    }

    fn is_up_to_date(&self, request: &ValidationRequest<'_>) -> bool {
        self.inner.is_up_to_date(request)
    }

    fn on_validated(
        &self,
        request: &ValidationRequest<'_>,
        result: &ValidationResult,
    ) -> Map<String, Value> {
        self.inner.on_validated(request, result)
    }

    fn conditions_on_error(&self, error: &ReconcileError) -> Vec<OperatorCondition> {
        self.inner.conditions_on_error(error)
    }

    async fn observe_suspended(&self, suspended: &SuspendedRequest<'_>) -> Option<ReconcileOutput> {
        self.inner.observe_suspended(suspended).await
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Self::Kind>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let name = name_of(request.raw_parent());
        let generation = &request.raw_parent()["metadata"]["generation"];
        self.process
            .begin(&name, &format!("reconcile {name}, generation {generation}"));
        let step = AssertUnwindSafe(self.inner.reconcile(request));
        let show = |result: &Result<ReconcileOutput, ReconcileError>| match result {
            Ok(output) => match &output.error {
                Some(error) => format!("reconciled {name}: {error}"),
                None => format!("reconciled {name}"),
            },
            Err(error) => format!("reconciled {name}: {error}"),
        };
        let result = self.end(&name, step.catch_unwind().await, show);
        let mut output = result.map_err(|error| self.accelerated(&name, error))?;
        output.requeue_after = self.requested(&name, output.requeue_after);
        output.error = output.error.map(|error| self.accelerated(&name, error));
        Ok(output)
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let name = name_of(deleted.object);
        self.process.begin(&name, &format!("finalize {name}"));
        let step = AssertUnwindSafe(self.inner.finalize(deleted));
        let show = |result: &Result<FinalizeOutcome, ReconcileError>| match result {
            Ok(FinalizeOutcome::Done) => format!("finalized {name}"),
            Ok(FinalizeOutcome::Retained(what)) => format!("finalized {name}, retained {what}"),
            Ok(FinalizeOutcome::Waiting(_)) => format!("finalizing {name}, waiting"),
            Err(error) => format!("finalizing {name}: {error}"),
        };
        let outcome = self.end(&name, step.catch_unwind().await, show);
        let outcome = outcome.map_err(|error| self.accelerated(&name, error))?;
        Ok(match outcome {
            FinalizeOutcome::Waiting(mut output) => {
                output.requeue_after = self.requested(&name, output.requeue_after);
                FinalizeOutcome::Waiting(output)
            }
            outcome => outcome,
        })
    }
}
