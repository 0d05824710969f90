//! Reconciliation of an object that is not being deleted.

use std::sync::Arc;
use std::time::Duration;

use json_patch::PatchOperation;
use lockstep_shared_validation::{LastValidated, ValidationRequest, ValidationResult, decode};
use serde_json::Value;

use crate::api::error::ReconcileError;
use crate::api::reconciler::{ReconcileOutput, Reconciler};
use crate::api::request::SyncRequest;
use crate::cache::object_key::ObjectKey;
use crate::events::recorder;
use crate::queue::backoff::LONGEST_OF_REJECTED;
use crate::reconcile::action::Action;
use crate::reconcile::conclusion::{Conclusion, Stop};
use crate::reconcile::finalizer;
use crate::reconcile::{Reconciliation, VALID};
use crate::status::patch::{READY, Status};
use crate::watch::namespace_watches::Unlisted;

/// Object that satisfies all rules.
struct Validated<K> {
    status: Status,
    object: K,
    result: ValidationResult,
}

impl<R: Reconciler> Reconciliation<'_, R> {
    /// Validates the object and brings it to its desired state.
    pub(crate) async fn update(&self) -> Result<Conclusion, Stop> {
        let validated = self.validated().await?;
        let Validated {
            status,
            object,
            result,
        } = self.initialized(validated).await?;
        let request = SyncRequest {
            parent: &object,
            raw: &result.object,
            children: self.observed_children(),
            related: self.related(),
            policy: &self.stored.policy,
            is_requested: self.request.is_some(),
        };
        let status = self.identified(status, &request, &result).await?;
        let status = self.record_intent(status).await?;
        match self.unlisted_children() {
            None => {}
            Some(Unlisted::Pending) => return Ok(Conclusion::Silent(Action::AwaitChange)),
            Some(Unlisted::Failed(message)) => {
                let error = ReconcileError::Transient {
                    reason: "ChildrenUnknown",
                    message,
                };
                return Ok(Conclusion::Failed { status, error });
            }
        }
        match self.context.reconciler.reconcile(&request).await {
            Ok(output) => {
                self.context.read_objects.set(&self.key(), &output.reads);
                self.apply_output(status, output).await
            }
            Err(error) => Ok(Conclusion::Failed { status, error }),
        }
    }

    /// Validates the object among the other objects.
    async fn validated(&self) -> Result<Validated<R::Kind>, Stop> {
        let mut status = self.status();
        let others = match self.related_for_validation() {
            Ok(others) => Arc::new(others),
            Err(error) => return Err(Conclusion::Failed { status, error }.into()),
        };
        let request = self.stored.request(&others);
        match self.up_to_date(&status, &request) {
            Some(UpToDate::Valid) => {
                let action = Action::RequeueAfter(recorder::RENEW_AFTER);
                return Err(Conclusion::Silent(action).into());
            }
            Some(UpToDate::Invalid(message)) => return Err(invalid(status, message).into()),
            None => {}
        }
        let result = self.validate(&others).await;
        // Validation may have taken a while. A result that was computed among other objects must not be reported
        // once these have changed.
        if !matches!(self.related_for_validation(), Ok(now) if now == *others) {
            let action = Action::RequeueAfter(Duration::ZERO);
            return Err(Conclusion::Silent(action).into());
        }
        self.context.metrics.validated(&self.context.name);
        let kind = self.context.validator.kind();
        self.context
            .metrics
            .violating_objects
            .set(kind, &self.uid, &result);
        let reconciler = &self.context.reconciler;
        status.set_fields(reconciler.on_validated(&request, &result));
        if !result.is_valid() {
            // An incomplete validation may give another result later, without a change.
            let action = if result.is_complete() {
                Action::RequeueAfter(recorder::RENEW_AFTER)
            } else {
                self.backoff()
            };
            let conclusion = Conclusion::Invalid {
                status,
                message: result.message(),
                violations: result.errors,
                action,
            };
            return Err(conclusion.into());
        }
        match decode::<R::Kind>(&result.object) {
            Ok(object) => Ok(Validated {
                status,
                object,
                result,
            }),
            Err(error) => {
                let message = format!("the object cannot be deserialized: {error}");
                Err(invalid(status, message).into())
            }
        }
    }

    /// Persists the defaults and the finalizer, if they are missing.
    async fn initialized(&self, validated: Validated<R::Kind>) -> Result<Validated<R::Kind>, Stop> {
        let mut operations = self.initialization(&validated.result);
        if operations.is_empty() {
            return Ok(validated);
        }
        let version = self.initial_status_written().await?;
        let precondition = finalizer::resource_version_precondition(version.as_deref());
        operations.insert(0, precondition);
        match self.patch(operations).await {
            // The watch event triggers the next reconciliation, with the changed object.
            Ok(patched) if patched.metadata.resource_version != version => {
                Err(Conclusion::Silent(Action::AwaitChange).into())
            }
            // The CRD in the cluster is of another release and prunes the added fields: no event will come,
            // and the defaults apply in memory.
            Ok(_) => Ok(validated),
            Err(kube::Error::Api(response)) if is_rejection(response.code) => {
                let status = validated.status;
                let message = format!(
                    "cannot persist defaults and finalizer: {}",
                    response.message
                );
                let error = ReconcileError::transient("CannotInitialize", message)
                    .requeue_after(LONGEST_OF_REJECTED);
                Err(Conclusion::Failed { status, error }.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the first status fields of an object that does not have the finalizer yet, for which nothing was created, and
    /// returns the resource version of the object. If this process ends before it adds the finalizer, they are there
    /// already.
    async fn initial_status_written(&self) -> Result<Option<String>, kube::Error> {
        let mut status = self.status();
        let fields = self.context.reconciler.initial_status(&self.stored.object);
        if self.is_finalizer_missing() && !fields.is_empty() {
            status.set_fields(fields);
            // Nothing has been done about this generation.
            status.keep_observed_generation();
            self.write_status(&mut status).await?;
        }
        Ok(status.resource_version().map(String::from))
    }

    fn is_finalizer_missing(&self) -> bool {
        let mut finalizer = self.context.finalizer.iter();
        finalizer.any(|it| finalizer::add_patch(&self.finalizers, it).is_some())
    }

    /// Adds the last validated values to the status, and the fields that identify what the object manages outside the
    /// cluster.
    async fn identified(
        &self,
        mut status: Status,
        request: &SyncRequest<'_, R::Kind>,
        result: &ValidationResult,
    ) -> Result<Status, Stop> {
        status.set_condition(VALID, true, "Valid", "The object passed validation");
        let last_validated =
            LastValidated::from_object(&result.object, self.context.validator.transition_fields());
        status.set_last_validated(&last_validated.with_ratcheted(&result.ratcheted));
        match self.context.reconciler.status_identity(request).await {
            Ok(identity) => status.set_fields(identity),
            Err(error) => return Err(Conclusion::Failed { status, error }.into()),
        }
        Ok(status)
    }

    /// Writes to the status what is about to be created outside, if it is not recorded yet: it must be found again even
    /// if this process does not survive. No other step before the report writes the status.
    async fn record_intent(&self, mut status: Status) -> Result<Status, kube::Error> {
        if status.last_validated_changed() {
            self.write_status(&mut status).await?;
        }
        Ok(status)
    }

    /// Returns why not all children are known, if they are not.
    fn unlisted_children(&self) -> Option<Unlisted> {
        let context = self.context;
        context
            .namespace_watches
            .unlisted(&self.key(), &context.owned_types)
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref().unwrap_or_default(), &self.name)
    }

    /// Returns what the operator passes to the rules about other objects.
    fn related_for_validation(&self) -> Result<Value, ReconcileError> {
        let reconciler = &self.context.reconciler;
        reconciler.related_for_validation(&self.stored.object, self.related())
    }

    /// Returns the stored validation result if the status describes the object in its current state.
    fn up_to_date(&self, status: &Status, request: &ValidationRequest<'_>) -> Option<UpToDate> {
        let is_requested = self.request.is_some();
        if is_requested || !status.is_unchanged() || !self.context.reconciler.is_up_to_date(request)
        {
            return None;
        }
        let (is_valid, message) = status.condition_of_this_generation(VALID)?;
        // The validated spec may not have been applied yet.
        if is_valid && !status.condition_of_this_generation(READY)?.0 {
            return None;
        }
        // The release that validated the object did not compare all the fields that this one compares.
        let fields = self.context.validator.transition_fields();
        let last_validated = request.last_validated;
        if is_valid && !last_validated.is_some_and(|it| it.is_complete(fields)) {
            return None;
        }
        // The message of every rule that is not a schema rule ends with the rule's id.
        let rules = (!is_valid).then(|| self.context.validator.rules());
        let names = rules.into_iter().flatten().map(|rule| rule.id);
        let broken = names.filter(|id| message.contains(&format!("[{id}]")));
        let kind = self.context.validator.kind();
        let violating_objects = &self.context.metrics.violating_objects;
        violating_objects.set_rules(kind, &self.uid, broken);
        Some(if is_valid {
            UpToDate::Valid
        } else {
            UpToDate::Invalid(message.to_owned())
        })
    }

    /// Creates, updates and deletes the children.
    async fn apply_output(
        &self,
        mut status: Status,
        output: ReconcileOutput,
    ) -> Result<Conclusion, Stop> {
        let error = match output.error {
            Some(error) => error,
            None => {
                let writer = self.writer();
                match writer.apply_all(&output.children, &self.children).await {
                    Ok(changes) => {
                        return Ok(Conclusion::Reconciled {
                            status,
                            output,
                            changes,
                        });
                    }
                    Err(failure) => failure.into_reconcile_error()?,
                }
            }
        };
        status.set_fields(output.status);
        status.set_operator_conditions(&output.conditions);
        self.publish(&output.events).await;
        Ok(Conclusion::Failed { status, error })
    }

    /// Returns the operations that persist the defaults and our finalizer, or none if all of them are set.
    fn initialization(&self, result: &ValidationResult) -> Vec<PatchOperation> {
        let finalizer = self.context.finalizer.iter();
        let finalizer = finalizer.filter_map(|it| finalizer::add_patch(&self.finalizers, it));
        result.defaults.0.iter().cloned().chain(finalizer).collect()
    }
}

/// Validation result that is stored in the status.
enum UpToDate {
    Valid,
    /// With the violations.
    Invalid(String),
}

/// Returns the conclusion for an object that stays invalid until it changes.
fn invalid(status: Status, message: String) -> Conclusion {
    Conclusion::Invalid {
        status,
        message,
        violations: Vec::new(),
        action: Action::RequeueAfter(recorder::RENEW_AFTER),
    }
}

/// Returns true if a retry gets the same response from the API server.
fn is_rejection(code: u16) -> bool {
    (400..500).contains(&code) && !matches!(code, 404 | 409 | 429)
}
