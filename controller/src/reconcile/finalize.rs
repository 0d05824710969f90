//! Reconciliation of an object that is being deleted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use crate::api::error::ReconcileError;
use crate::api::reconciler::{FinalizeOutcome, FinalizeRequest, ReconcileOutput, Reconciler};
use crate::children::AppliedChanges;
use crate::queue::backoff::LONGEST_WHILE_DELETING;
use crate::reconcile::Reconciliation;
use crate::reconcile::action::Action;
use crate::reconcile::conclusion::{Conclusion, Stop};
use crate::reconcile::finalizer;
use crate::status::patch::{Health, Status};

const DELETION_STALLED: &str = "DeletionStalled";

/// Annotation that marks the cleanup of an object as completed. The value is the UID of the object, since
/// annotations can be copied.
const CLEANED_UP: &str = "lockstep.dev/cleanup-completed";

/// Finalizer that `--cascade=orphan` sets: it keeps an object until the owner references of its children are
/// removed.
const ORPHAN: &str = "orphan";

impl<R: Reconciler> Reconciliation<'_, R> {
    /// Removes the finalizer once the cleanup is done.
    pub(crate) async fn finalize(&self) -> Result<Conclusion, Stop> {
        let removal = self
            .context
            .finalizer
            .as_deref()
            .and_then(|finalizer| finalizer::remove_patch(&self.finalizers, finalizer));
        let Some(removal) = removal else {
            self.forget();
            return Ok(Conclusion::Silent(Action::AwaitChange));
        };
        let result = self.validate(&Arc::new(Value::Null)).await;
        let deleted = FinalizeRequest {
            object: &self.stored.object,
            last_validated: self.stored.last_validated.as_ref(),
            is_valid: result.is_valid(),
            children: self.observed_children(),
            related: self.related(),
        };
        self.record_terminating();
        if self.is_cleaned_up() {
            return self.release(&removal, None).await;
        }
        match self.context.reconciler.finalize(&deleted).await {
            Ok(FinalizeOutcome::Done) => self.release(&removal, None).await,
            Ok(FinalizeOutcome::Retained(what)) => self.release(&removal, Some(&what)).await,
            Ok(FinalizeOutcome::Waiting(progress)) => self.waiting(&removal, progress).await,
            Err(error) => self.failing(&removal, Map::new(), error).await,
        }
    }

    /// Lets the children do the remaining cleanup.
    async fn waiting(
        &self,
        removal: &Patch<()>,
        mut progress: ReconcileOutput,
    ) -> Result<Conclusion, Stop> {
        if let Some(error) = progress.error.take() {
            self.publish(&progress.events).await;
            return self.failing(removal, progress.status, error).await;
        }
        // Whatever triggers the next reconciliation, it must come early enough to report a stalled deletion and to
        // enforce the time limit.
        progress.requeue_after = progress.requeue_after.min(LONGEST_WHILE_DELETING);
        if self.must_force_finalize() {
            let readiness = progress.readiness.take();
            let none = AppliedChanges::default();
            let readiness = readiness.unwrap_or_else(|| self.readiness(&progress.children, &none));
            return self.force_finalize(removal, &readiness.message).await;
        }
        let writer = self.writer();
        let cleaned_up = writer.clean_up(&progress.children, &self.children).await;
        let changes = match cleaned_up {
            Ok(Some(changes)) => changes,
            // The object is gone, or another reconciliation has removed the finalizer, and the watch event has not
            // arrived yet; or the API server does not serve the kind for a moment, and no event follows.
            Ok(None) => {
                let action = Action::RequeueAfter(self.retry_delay());
                return Ok(Conclusion::Silent(action));
            }
            Err(failure) => {
                let error = failure.into_reconcile_error()?;
                return self.failing(removal, Map::new(), error).await;
            }
        };
        let readiness = progress.readiness.take();
        let readiness = readiness.unwrap_or_else(|| self.readiness(&progress.children, &changes));
        match self.stalled(&readiness.message).await {
            Some(status) => {
                progress.readiness = Some(readiness);
                Ok(Conclusion::Reconciled {
                    status,
                    output: progress,
                    changes,
                })
            }
            None => self.force_finalize(removal, &readiness.message).await,
        }
    }

    /// Reports an error, with the operator's own status fields.
    async fn failing(
        &self,
        removal: &Patch<()>,
        fields: Map<String, Value>,
        error: ReconcileError,
    ) -> Result<Conclusion, Stop> {
        let why = error.to_string();
        match self.stalled(&why).await {
            Some(mut status) => {
                status.set_fields(fields);
                Ok(Conclusion::Failed { status, error })
            }
            None => self.force_finalize(removal, &why).await,
        }
    }

    /// Returns the time since the deletion began.
    fn deletion_age(&self) -> Duration {
        let since = self.deleting_since.unwrap_or_else(Timestamp::now);
        Timestamp::now()
            .duration_since(since)
            .try_into()
            .unwrap_or_default()
    }

    fn record_terminating(&self) {
        if let Some(since) = self.deleting_since {
            let terminating = &self.context.metrics.terminating;
            terminating.set(&self.context.name, &self.uid, since.as_second());
        }
    }

    /// Returns true if the deletion has taken longer than the limit after which the finalizer is removed.
    fn must_force_finalize(&self) -> bool {
        let limit = self.context.deletion_timeouts.force_after;
        limit.is_some_and(|limit| self.deletion_age() >= limit)
    }

    /// Returns true if the cleanup is completed and only the removal of the finalizer is left.
    fn is_cleaned_up(&self) -> bool {
        let annotations = &self.stored.object["metadata"]["annotations"];
        annotations[CLEANED_UP].as_str() == Some(&self.uid)
    }

    /// Records that the cleanup is completed: once the cleanup Job is deleted, the next reconciliation would not
    /// find it and would run the cleanup again.
    async fn record_cleanup(&self) -> Result<(), kube::Error> {
        if self.is_cleaned_up() || !self.writer().has_cleanup_jobs() {
            return Ok(());
        }
        let metadata = json!({"uid": self.uid, "annotations": {CLEANED_UP: self.uid}});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &patch).await?;
        self.context.written.objects.record(patched.into_inner());
        Ok(())
    }

    /// Returns the status of an object whose finalizer stays for this reason, which is reported if the deletion
    /// has taken long. None if the finalizer is to be removed now.
    async fn stalled(&self, why: &str) -> Option<Status> {
        if self.must_force_finalize() {
            return None;
        }
        let mut status = self.status();
        if self.deletion_age() >= self.context.deletion_timeouts.stalled_after {
            let since = self.deleting_since.unwrap_or_default();
            let message = format!("Deletion started at {since} and has not finished: {why}");
            status.set_condition(DELETION_STALLED, true, "FinalizerStalled", &message);
            self.context
                .recorder
                .warning(&self.reference, DELETION_STALLED, &message)
                .await;
        }
        Some(status)
    }

    /// Removes the finalizer before the cleanup is done: the external resources are left behind.
    async fn force_finalize(&self, removal: &Patch<()>, why: &str) -> Result<Conclusion, Stop> {
        let own = Status::from_object(&self.stored.object, self.context.has_status).own_fields();
        let left = Value::Object(own);
        tracing::error!(
            %left,
            why,
            "the finalizer is removed before the cleanup completed: external resources are left behind"
        );
        let note = format!("finalizer removed before cleanup completed; leaked: {left}; {why}");
        self.context
            .recorder
            .warning(&self.reference, "ResourcesLeaked", &note)
            .await;
        let mut writer = self.writer();
        let released = writer
            .release(self.orphans_dependents(), &self.unwatched_children())
            .await;
        for error in [released.err(), writer.delete_cleanup_jobs().await.err()]
            .iter()
            .flatten()
        {
            tracing::error!(%error, "children may be left behind as well");
        }
        self.remove_finalizer(removal).await
    }

    /// Returns true if the children are to stay, as `--cascade=orphan` requests.
    fn orphans_dependents(&self) -> bool {
        self.finalizers.iter().any(|name| name == ORPHAN)
    }

    /// Returns the types of children that are watched only where an owner has some, with the namespaces of this owner.
    fn unwatched_children(&self) -> Vec<(usize, String)> {
        let watches = &self.context.namespace_watches;
        let types = 0..self.context.owned_types.len();
        let types = types.filter_map(|at| Some((at, watches.of_type(at)?)));
        let namespaces = types.flat_map(|(at, type_)| {
            let namespaces = type_.namespaces_of(&self.stored.object).into_iter();
            namespaces.map(move |namespace| (at, namespace))
        });
        namespaces.collect()
    }

    /// Releases the children, then removes the finalizer of the object, even if external resources are kept.
    async fn release(
        &self,
        removal: &Patch<()>,
        retained: Option<&str>,
    ) -> Result<Conclusion, Stop> {
        self.record_cleanup().await?;
        let unwatched = self.unwatched_children();
        let mut writer = self.writer();
        match writer.release(self.orphans_dependents(), &unwatched).await {
            Ok(true) => {
                if let Some(what) = retained {
                    tracing::warn!(
                        what,
                        "the object is removed and its external resources are kept"
                    );
                    let recorder = &self.context.recorder;
                    recorder.normal(&self.reference, "Retained", what).await;
                }
                return self.remove_finalizer(removal).await;
            }
            Ok(false) => {}
            Err(error) => {
                let error = ReconcileError::Transient {
                    reason: "ChildrenNotReleased",
                    message: format!("the children cannot be released: {error}"),
                };
                return self.failing(removal, Map::new(), error).await;
            }
        }
        let why = "its cluster-scoped children have not been deleted yet";
        let Some(mut status) = self.stalled(why).await else {
            return self.force_finalize(removal, why).await;
        };
        status.set_health(Health::Reconciling, "ChildrenTerminating", why);
        // The watches report when the children are gone.
        let action = Action::RequeueAfter(LONGEST_WHILE_DELETING);
        Ok(Conclusion::Status(status, action))
    }

    async fn remove_finalizer(&self, removal: &Patch<()>) -> Result<Conclusion, Stop> {
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, removal).await?;
        tracing::info!("finalizer removed");
        self.forget();
        if !patched.finalizers().is_empty() {
            // The object remains because of other finalizers; nothing is left to do for it here.
            self.context.written.objects.record(patched.into_inner());
        }
        Ok(Conclusion::Silent(Action::AwaitChange))
    }
}
