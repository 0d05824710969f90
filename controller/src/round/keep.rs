//! Reconciliation of an object that is not being deleted.

use std::sync::Arc;
use std::time::Duration;

use json_patch::PatchOperation;
use serde_json::Value;
use shared_validation::{Accepted, Candidate, Verdict, decode};

use super::{READY, Round, VALID};
use crate::announce;
use crate::cycle::Next;
use crate::finalizers;
use crate::reconcile::{Progress, Reconcile, ReconcileError};
use crate::request::SyncRequest;
use crate::status::Status;

impl<R: Reconcile> Round<'_, R> {
    /// Validates the object and brings it to its desired state.
    pub(crate) async fn keep(&self) -> Result<Next, kube::Error> {
        let mut status = self.status();
        let others = match self.others() {
            Ok(others) => Arc::new(others),
            Err(error) => return self.failed(status, error).await,
        };
        let candidate = self.stored.candidate(&others);
        match self.settled(&status, &candidate) {
            Some(Settled::Valid) => return Ok(Next::After(announce::RENEW_AFTER)),
            Some(Settled::Invalid(message)) => {
                return self
                    .invalid(status, &message, &[], Next::After(announce::RENEW_AFTER))
                    .await;
            }
            None => {}
        }
        let verdict = self.check(&others).await;
        // Validation may have taken a while. A result that was computed among other objects must not be reported
        // once these have changed.
        if !matches!(self.others(), Ok(now) if now == *others) {
            return Ok(Next::After(Duration::ZERO));
        }
        self.cycle.metrics.judged(&self.cycle.name);
        let kind = self.cycle.ruleset.kind();
        self.cycle.metrics.standing.set(kind, &self.uid, &verdict);
        let reconciler = &self.cycle.reconciler;
        status.fields(reconciler.judged(&candidate, &verdict));
        if !verdict.is_valid() {
            // An incomplete validation may give another result later, without a change.
            let next = if verdict.is_conclusive() {
                Next::After(announce::RENEW_AFTER)
            } else {
                self.backoff()
            };
            return self
                .invalid(status, &verdict.message(), &verdict.errors, next)
                .await;
        }
        let object = match decode::<R::Kind>(&verdict.object) {
            Ok(object) => object,
            Err(error) => {
                let message = format!("the object cannot be deserialized: {error}");
                return self
                    .invalid(status, &message, &[], Next::After(announce::RENEW_AFTER))
                    .await;
            }
        };
        if let Some(operations) = self.initialization(&verdict) {
            match self.patch(operations).await {
                // The watch event triggers the next reconciliation, with the changed object.
                Ok(patched) if patched.metadata.resource_version != self.resource_version() => {
                    return Ok(Next::OnChange);
                }
                // The CRD in the cluster is of another release and prunes the added fields: no event will come,
                // and the defaults apply in memory.
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if is_refusal(refusal.code) => {
                    let error = ReconcileError::Transient {
                        reason: "CannotInitialize",
                        message: format!(
                            "cannot persist defaults and finalizer: {}",
                            refusal.message
                        ),
                    };
                    return self.failed(status, error).await;
                }
                Err(error) => return Err(error),
            }
        }
        status.condition(VALID, true, "Valid", "The object passed validation");
        let accepted = Accepted::of(&verdict.object, self.cycle.ruleset.transition_fields());
        status.accept(&accepted.in_spite_of(&verdict.inherited));
        let request = SyncRequest {
            parent: &object,
            raw: &verdict.object,
            children: self.observation(),
            related: self.related(),
        };
        match self.cycle.reconciler.identity(&request).await {
            Ok(identity) => status.fields(identity),
            Err(error) => return self.failed(status, error).await,
        }
        // What is about to be created outside must be recorded even if this process does not survive.
        if status.memory_differs() {
            self.write(&mut status).await?;
        }
        match self.cycle.reconciler.reconcile(&request).await {
            Ok(progress) => self.settle(status, progress).await,
            Err(error) => self.failed(status, error).await,
        }
    }

    /// Returns what the operator passes to the rules about other objects.
    fn others(&self) -> Result<Value, ReconcileError> {
        let reconciler = &self.cycle.reconciler;
        reconciler.others(&self.stored.object, self.related())
    }

    /// Returns the stored validation result if the status describes the object in its current state.
    fn settled(&self, status: &Status, candidate: &Candidate<'_>) -> Option<Settled> {
        if !status.is_as_stored() || !self.cycle.reconciler.is_settled(candidate) {
            return None;
        }
        let (is_valid, message) = status.is_told(VALID)?;
        // The validated spec may not have been applied yet.
        if is_valid && !status.is_told(READY)?.0 {
            return None;
        }
        // The message of every rule that is not a schema rule ends with the rule's id.
        let rules = (!is_valid).then(|| self.cycle.ruleset.catalogue());
        let names = rules.into_iter().flatten().map(|rule| rule.id);
        let broken = names.filter(|id| message.contains(&format!("[{id}]")));
        let kind = self.cycle.ruleset.kind();
        let standing = &self.cycle.metrics.standing;
        standing.set_rules(kind, &self.uid, broken);
        Some(if is_valid {
            Settled::Valid
        } else {
            Settled::Invalid(message.to_owned())
        })
    }

    /// Creates, updates and deletes the children, and reports the result.
    async fn settle(&self, mut status: Status, progress: Progress) -> Result<Next, kube::Error> {
        let writer = self.writer();
        match writer.settle(&progress.children, &self.children).await {
            Ok(()) => self.progressed(status, progress).await,
            Err(failure) => {
                let error = failure.told()?;
                status.fields(progress.status);
                self.failed(status, error).await
            }
        }
    }

    /// Returns one patch with the defaults to persist and our finalizer, or none if all of them are set.
    fn initialization(&self, verdict: &Verdict) -> Option<Vec<PatchOperation>> {
        let mut operations = verdict.additions.0.clone();
        let finalizer = self.cycle.finalizer.iter();
        operations.extend(finalizer.filter_map(|it| finalizers::addition(&self.finalizers, it)));
        if operations.is_empty() {
            return None;
        }
        operations.insert(0, finalizers::only_in(self.resource_version().as_deref()));
        Some(operations)
    }

    fn resource_version(&self) -> Option<String> {
        let version = self.stored.object.pointer("/metadata/resourceVersion");
        version.and_then(Value::as_str).map(String::from)
    }
}

/// Validation result that is stored in the status.
enum Settled {
    Valid,
    /// With the violations.
    Invalid(String),
}

/// Returns true if a retry gets the same response from the API server.
fn is_refusal(code: u16) -> bool {
    (400..500).contains(&code) && !matches!(code, 404 | 409 | 429)
}
