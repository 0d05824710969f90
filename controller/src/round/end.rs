//! A round of an object that is being deleted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Reconciliation;
use crate::backoff::LONGEST_WHILE_DELETING;
use crate::cycle::Action;
use crate::finalizers;
use crate::reconcile::{
    FinalizeOutcome, FinalizeRequest, ReconcileError, ReconcileOutput, Reconciler,
};
use crate::status::{Health, Status};

const DELETION_STALLED: &str = "DeletionStalled";

/// The annotation that tells that nothing is left to do before an object goes; with its UID, since annotations are
/// copied.
const CLEANED_UP: &str = "lockstep.dev/cleaned-up";

/// What keeps an object, while `--cascade=orphan` deletes it, until its children have forgotten it.
const ORPHAN: &str = "orphan";

impl<R: Reconciler> Reconciliation<'_, R> {
    /// Lets the object go once what it stands for is gone.
    pub(crate) async fn finalize(&self) -> Result<Action, kube::Error> {
        let removal = self
            .cycle
            .finalizer
            .as_deref()
            .and_then(|finalizer| finalizers::remove_patch(&self.finalizers, finalizer));
        let Some(removal) = removal else {
            self.forget();
            return Ok(Action::AwaitChange);
        };
        let verdict = self.validate(&Arc::new(Value::Null)).await;
        let deleted = FinalizeRequest {
            object: &self.stored.object,
            last_validated: self.stored.accepted.as_ref(),
            is_valid: verdict.is_valid(),
            children: self.observed_children(),
        };
        self.record_terminating();
        if self.is_cleaned_up() {
            return self.release(&removal, None).await;
        }
        match self.cycle.reconciler.finalize(&deleted).await {
            Ok(FinalizeOutcome::Done) => self.release(&removal, None).await,
            Ok(FinalizeOutcome::Retained(what)) => self.release(&removal, Some(&what)).await,
            Ok(FinalizeOutcome::Waiting(progress)) => self.waiting(&removal, progress).await,
            Err(error) => self.failing(&removal, error).await,
        }
    }

    /// Has its children do the work that is left.
    async fn waiting(
        &self,
        removal: &Patch<()>,
        mut progress: ReconcileOutput,
    ) -> Result<Action, kube::Error> {
        // Whatever wakes it, it is told when it takes long, and let go when it takes too long.
        progress.requeue_after = progress.requeue_after.min(LONGEST_WHILE_DELETING);
        if self.must_force_finalize() {
            let readiness = progress.readiness.take();
            let readiness = readiness.unwrap_or_else(|| self.readiness(&progress.children));
            return self.force_finalize(removal, &readiness.message).await;
        }
        let writer = self.writer();
        match writer.clean_up(&progress.children, &self.children).await {
            Ok(true) => {}
            // Gone already, or let go by another round: the watch has yet to tell.
            Ok(false) => return Ok(Action::AwaitChange),
            Err(failure) => return self.failing(removal, failure.into_reconcile_error()?).await,
        }
        let readiness = progress.readiness.take();
        let readiness = readiness.unwrap_or_else(|| self.readiness(&progress.children));
        match self.stalled(&readiness.message).await {
            Some(status) => {
                progress.readiness = Some(readiness);
                self.reconciled(status, progress).await
            }
            None => self.force_finalize(removal, &readiness.message).await,
        }
    }

    async fn failing(
        &self,
        removal: &Patch<()>,
        error: ReconcileError,
    ) -> Result<Action, kube::Error> {
        let why = error.to_string();
        match self.stalled(&why).await {
            Some(status) => self.failed(status, error).await,
            None => self.force_finalize(removal, &why).await,
        }
    }

    /// How long the object has been being deleted.
    fn deletion_age(&self) -> Duration {
        let since = self.deleting_since.unwrap_or_else(Timestamp::now);
        Timestamp::now()
            .duration_since(since)
            .try_into()
            .unwrap_or_default()
    }

    fn record_terminating(&self) {
        if let Some(since) = self.deleting_since {
            let terminating = &self.cycle.metrics.terminating;
            terminating.set(&self.cycle.name, &self.uid, since.as_second());
        }
    }

    /// Whether the object has been kept for longer than is wanted.
    fn must_force_finalize(&self) -> bool {
        let limit = self.cycle.deletion_timeouts.force_after;
        limit.is_some_and(|limit| self.deletion_age() >= limit)
    }

    /// Whether all is done that had to be done before it goes, but for letting it go.
    fn is_cleaned_up(&self) -> bool {
        let annotations = &self.stored.object["metadata"]["annotations"];
        annotations[CLEANED_UP].as_str() == Some(&self.uid)
    }

    /// Remembers that it is: once its Job is deleted, the next round would find it missing and have all of it
    /// done again.
    async fn record_cleanup(&self) -> Result<(), kube::Error> {
        if self.is_cleaned_up() || !self.writer().has_cleanup_jobs() {
            return Ok(());
        }
        let metadata = json!({"uid": self.uid, "annotations": {CLEANED_UP: self.uid}});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &patch).await?;
        self.cycle.pending_writes.record(patched);
        Ok(())
    }

    /// The status of an object that is kept because of this, which is told if it has been so for long. None
    /// when it is kept no longer.
    async fn stalled(&self, why: &str) -> Option<Status> {
        if self.must_force_finalize() {
            return None;
        }
        let mut status = self.status();
        if self.deletion_age() >= self.cycle.deletion_timeouts.stalled_after {
            let since = self.deleting_since.unwrap_or_default();
            let message = format!("its deletion began at {since} and has not ended: {why}");
            status.set_condition(DELETION_STALLED, true, "FinalizerStalled", &message);
            self.cycle
                .recorder
                .warning(&self.reference, DELETION_STALLED, &message)
                .await;
        }
        Some(status)
    }

    /// Gives up: the object goes, and what it stood for is left behind.
    async fn force_finalize(&self, removal: &Patch<()>, why: &str) -> Result<Action, kube::Error> {
        let own = Status::from_object(&self.stored.object, self.cycle.has_status).own_fields();
        let left = Value::Object(own);
        tracing::error!(
            %left,
            why,
            "the object goes though its cleanup has not ended: what it stood for is left behind"
        );
        let note = format!("let go though its cleanup has not ended; left behind: {left}; {why}");
        self.cycle
            .recorder
            .warning(&self.reference, "Orphaned", &note)
            .await;
        let writer = self.writer();
        let released = writer.release(self.orphans_dependents()).await;
        for error in [released.err(), writer.remove_finalizers().await.err()]
            .iter()
            .flatten()
        {
            tracing::error!(%error, "its children may be left behind as well");
        }
        self.remove_finalizer(removal).await
    }

    /// Whether the children are to stay, as `--cascade=orphan` asks for.
    fn orphans_dependents(&self) -> bool {
        self.finalizers.iter().any(|name| name == ORPHAN)
    }

    /// Lets the object go, whatever is kept of what it stood for: first its children, then the object itself.
    async fn release(
        &self,
        removal: &Patch<()>,
        kept: Option<&str>,
    ) -> Result<Action, kube::Error> {
        self.record_cleanup().await?;
        match self.writer().release(self.orphans_dependents()).await {
            Ok(true) => {
                if let Some(what) = kept {
                    tracing::warn!(what, "the object goes and what it stood for stays");
                    let announcer = &self.cycle.recorder;
                    announcer.normal(&self.reference, "Kept", what).await;
                }
                return self.remove_finalizer(removal).await;
            }
            Ok(false) => {}
            Err(error) => {
                let error = ReconcileError::Transient {
                    reason: "ChildrenNotReleased",
                    message: format!("its children cannot be let go: {error}"),
                };
                return self.failing(removal, error).await;
            }
        }
        let why = "its children that are in no namespace have not yet gone";
        let Some(mut status) = self.stalled(why).await else {
            return self.force_finalize(removal, why).await;
        };
        status.set_health(Health::Reconciling, "ChildrenLeaving", why);
        self.write_status(&mut status).await?;
        // Their watches tell when they are gone.
        Ok(Action::RequeueAfter(LONGEST_WHILE_DELETING))
    }

    async fn remove_finalizer(&self, removal: &Patch<()>) -> Result<Action, kube::Error> {
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, removal).await?;
        tracing::info!("the finalizer is removed");
        self.forget();
        if !patched.finalizers().is_empty() {
            // It stays for the sake of others, and is no business of ours any more.
            self.cycle.pending_writes.record(patched);
        }
        Ok(Action::AwaitChange)
    }
}
