//! A round of an object that is being deleted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Round;
use crate::backoff::LONGEST_WHILE_DELETING;
use crate::cycle::Next;
use crate::finalizers;
use crate::reconcile::{Deleted, Finalized, Progress, Reconcile, ReconcileError};
use crate::status::{Standing, Status};

const DELETION_STALLED: &str = "DeletionStalled";

/// The annotation that tells that nothing is left to do before an object goes; with its UID, since annotations are
/// copied.
const CLEANED_UP: &str = "lockstep.dev/cleaned-up";

/// What keeps an object, while `--cascade=orphan` deletes it, until its children have forgotten it.
const ORPHAN: &str = "orphan";

impl<R: Reconcile> Round<'_, R> {
    /// Lets the object go once what it stands for is gone.
    pub(crate) async fn end(&self) -> Result<Next, kube::Error> {
        let removal = self
            .cycle
            .finalizer
            .as_deref()
            .and_then(|finalizer| finalizers::removal(&self.finalizers, finalizer));
        let Some(removal) = removal else {
            self.forget();
            return Ok(Next::OnChange);
        };
        let verdict = self.check(&Arc::new(Value::Null)).await;
        let deleted = Deleted {
            object: &self.stored.object,
            accepted: self.stored.accepted.as_ref(),
            valid: verdict.is_valid(),
            children: self.observation(),
        };
        self.note_terminating();
        if self.is_cleaned_up() {
            return self.release(&removal, None).await;
        }
        match self.cycle.reconciler.finalize(&deleted).await {
            Ok(Finalized::Gone) => self.release(&removal, None).await,
            Ok(Finalized::Kept(what)) => self.release(&removal, Some(&what)).await,
            Ok(Finalized::Waiting(progress)) => self.waiting(&removal, progress).await,
            Err(error) => self.failing(&removal, error).await,
        }
    }

    /// Has its children do the work that is left.
    async fn waiting(
        &self,
        removal: &Patch<()>,
        mut progress: Progress,
    ) -> Result<Next, kube::Error> {
        // Whatever wakes it, it is told when it takes long, and let go when it takes too long.
        progress.requeue_after = progress.requeue_after.min(LONGEST_WHILE_DELETING);
        if self.gives_up() {
            let readiness = progress.readiness.take();
            let readiness = readiness.unwrap_or_else(|| self.readiness(&progress.children));
            return self.let_go(removal, &readiness.message).await;
        }
        let writer = self.writer();
        match writer.clean_up(&progress.children, &self.children).await {
            Ok(true) => {}
            // Gone already, or let go by another round: the watch has yet to tell.
            Ok(false) => return Ok(Next::OnChange),
            Err(failure) => return self.failing(removal, failure.told()?).await,
        }
        let readiness = progress.readiness.take();
        let readiness = readiness.unwrap_or_else(|| self.readiness(&progress.children));
        match self.stalled(&readiness.message).await {
            Some(status) => {
                progress.readiness = Some(readiness);
                self.progressed(status, progress).await
            }
            None => self.let_go(removal, &readiness.message).await,
        }
    }

    async fn failing(
        &self,
        removal: &Patch<()>,
        error: ReconcileError,
    ) -> Result<Next, kube::Error> {
        let why = error.to_string();
        match self.stalled(&why).await {
            Some(status) => self.failed(status, error).await,
            None => self.let_go(removal, &why).await,
        }
    }

    /// How long the object has been being deleted.
    fn waits(&self) -> Duration {
        let since = self.deleting_since.unwrap_or_else(Timestamp::now);
        Timestamp::now()
            .duration_since(since)
            .try_into()
            .unwrap_or_default()
    }

    fn note_terminating(&self) {
        if let Some(since) = self.deleting_since {
            let terminating = &self.cycle.metrics.terminating;
            terminating.set(&self.cycle.name, &self.uid, since.as_second());
        }
    }

    /// Whether the object has been kept for longer than is wanted.
    fn gives_up(&self) -> bool {
        let limit = self.cycle.stalls.let_go_after;
        limit.is_some_and(|limit| self.waits() >= limit)
    }

    /// Whether all is done that had to be done before it goes, but for letting it go.
    fn is_cleaned_up(&self) -> bool {
        let annotations = &self.stored.object["metadata"]["annotations"];
        annotations[CLEANED_UP].as_str() == Some(&self.uid)
    }

    /// Remembers that it is: once its Job is deleted, the next round would find it missing and have all of it
    /// done again.
    async fn note_cleaned_up(&self) -> Result<(), kube::Error> {
        if self.is_cleaned_up() || !self.writer().cleans_up() {
            return Ok(());
        }
        let metadata = json!({"uid": self.uid, "annotations": {CLEANED_UP: self.uid}});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &patch).await?;
        self.cycle.written.note(patched);
        Ok(())
    }

    /// The status of an object that is kept because of this, which is told if it has been so for long. None
    /// when it is kept no longer.
    async fn stalled(&self, why: &str) -> Option<Status> {
        if self.gives_up() {
            return None;
        }
        let mut status = self.status();
        if self.waits() >= self.cycle.stalls.told_after {
            let since = self.deleting_since.unwrap_or_default();
            let message = format!("its deletion began at {since} and has not ended: {why}");
            status.condition(DELETION_STALLED, true, "FinalizerStalled", &message);
            self.cycle
                .announcer
                .warn(&self.reference, DELETION_STALLED, &message)
                .await;
        }
        Some(status)
    }

    /// Gives up: the object goes, and what it stood for is left behind.
    async fn let_go(&self, removal: &Patch<()>, why: &str) -> Result<Next, kube::Error> {
        let own = Status::of(&self.stored.object, self.cycle.has_status).own_fields();
        let left = Value::Object(own);
        tracing::error!(
            %left,
            why,
            "the object goes though its cleanup has not ended: what it stood for is left behind"
        );
        let note = format!("let go though its cleanup has not ended; left behind: {left}; {why}");
        self.cycle
            .announcer
            .warn(&self.reference, "Orphaned", &note)
            .await;
        let writer = self.writer();
        let released = writer.release(self.keeps_all()).await;
        for error in [released.err(), writer.dismiss().await.err()]
            .iter()
            .flatten()
        {
            tracing::error!(%error, "its children may be left behind as well");
        }
        self.remove_finalizer(removal).await
    }

    /// Whether the children are to stay, as `--cascade=orphan` asks for.
    fn keeps_all(&self) -> bool {
        self.finalizers.iter().any(|name| name == ORPHAN)
    }

    /// Lets the object go, whatever is kept of what it stood for: first its children, then the object itself.
    async fn release(&self, removal: &Patch<()>, kept: Option<&str>) -> Result<Next, kube::Error> {
        self.note_cleaned_up().await?;
        match self.writer().release(self.keeps_all()).await {
            Ok(true) => {
                if let Some(what) = kept {
                    tracing::warn!(what, "the object goes and what it stood for stays");
                    let announcer = &self.cycle.announcer;
                    announcer.tell(&self.reference, "Kept", what).await;
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
            return self.let_go(removal, why).await;
        };
        status.stands(Standing::Reconciling, "ChildrenLeaving", why);
        self.write(&mut status).await?;
        // Their watches tell when they are gone.
        Ok(Next::After(LONGEST_WHILE_DELETING))
    }

    async fn remove_finalizer(&self, removal: &Patch<()>) -> Result<Next, kube::Error> {
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, removal).await?;
        tracing::info!("the finalizer is removed");
        self.forget();
        if !patched.finalizers().is_empty() {
            // It stays for the sake of others, and is no business of ours any more.
            self.cycle.written.note(patched);
        }
        Ok(Next::OnChange)
    }
}
