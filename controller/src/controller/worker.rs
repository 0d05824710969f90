//! Workers that process keys from the queue.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use kube::ResourceExt;
use kube::api::DynamicObject;
use tokio::sync::watch;
use tokio::task::yield_now;
use tracing::Instrument;

use crate::api::reconciler::Reconciler;
use crate::cache::object_key::ObjectKey;
use crate::cache::related::RelatedCache;
use crate::cache::store::{CompressedObject, Store};
use crate::controller::context::Context;
use crate::queue::current_namespace;
use crate::queue::priority_queue::Queue;
use crate::reconcile::action::Action;
use crate::reconcile::reconcile;

/// Largest fraction by which a delay is lengthened.
const JITTER: f64 = 0.1;

/// One worker that processes keys from the queue.
pub(crate) struct Worker<'a, R> {
    pub(crate) context: &'a Context<R>,
    pub(crate) store: Store,
    pub(crate) related: &'a [RelatedCache],
    pub(crate) queue: &'a Queue<ObjectKey>,
}

impl<R: Reconciler> Worker<'_, R> {
    /// Processes keys until the queue is closed, once all caches are filled.
    pub(crate) async fn run(&self, mut incomplete: watch::Receiver<usize>) {
        tokio::select! {
            _ = incomplete.wait_for(|watches| *watches == 0) => {}
            () = self.queue.closed() => {}
        }
        while let Some(key) = self.queue.next().await {
            let next = match self.store.get(&key) {
                Some(stored) => {
                    let reconciled = Box::pin(self.reconcile_stored(&stored));
                    let next = current_namespace::within(key.namespace(), reconciled).await;
                    let uid = stored.uid();
                    let stored = self.store.get(&key);
                    if stored.is_none_or(|stored| stored.uid() != uid) {
                        // The object was deleted, and its state removed, before the reconciliation ended.
                        self.context.forget(uid);
                    }
                    next
                }
                None => Action::AwaitChange,
            };
            let again_after = match next {
                Action::AwaitChange => None,
                // The jitter spreads objects that were reconciled together.
                Action::RequeueAfter(time) | Action::Backoff(time) => {
                    Some(time.mul_f64(1.0 + JITTER * fastrand::f64()))
                }
            };
            self.queue.done(&key, again_after);
            // A reconciliation that finds nothing to do never waits, and at a start there are thousands of them:
            // the other tasks on this thread, such as the renewal of the lease, run in between.
            yield_now().await;
        }
    }

    /// Reconciles an object once, unless this replica does not hold its shard.
    async fn reconcile_stored(&self, stored: &Arc<CompressedObject>) -> Action {
        let reconciliation = async {
            let object = self.latest(stored);
            let cached = Some(Arc::clone(stored));
            self.reconcile(&object, cached).await
        };
        let within_shard = self.context.within_shard(stored.uid(), reconciliation);
        // An object of a shard that is not ready is enqueued when it is, and the others are those of other replicas.
        Box::pin(within_shard).await.unwrap_or(Action::AwaitChange)
    }

    /// Returns the latest known state of an object.
    fn latest(&self, stored: &CompressedObject) -> Arc<DynamicObject> {
        let stored = Arc::new(stored.decompress());
        self.context.written.objects.resolve_and_prune(stored)
    }

    /// Reconciles an object once. A failure becomes a back-off.
    /// `cached` is the object in the cache, if it comes from there.
    pub(crate) async fn reconcile(
        &self,
        object: &DynamicObject,
        cached: Option<Arc<CompressedObject>>,
    ) -> Action {
        let started = Instant::now();
        let span = tracing::info_span!(
            "reconcile",
            controller = &self.context.controller,
            // Not `name`: that is the name of the span.
            object = %ObjectKey::of(object),
            generation = object.metadata.generation,
            // The same in all log messages of one reconciliation, and in no other.
            reconcile_id = format!("{:016x}", fastrand::u64(..)),
        );
        let _active = self.context.metrics.start_worker(&self.context.name);
        let reconciliation = reconcile(self.context, object, self.related, cached);
        let reconciliation = AssertUnwindSafe(reconciliation.instrument(span.clone()));
        let (next, result) = match reconciliation.catch_unwind().await {
            Ok(Ok(Action::AwaitChange)) => (Action::AwaitChange, "success"),
            Ok(Ok(next @ Action::RequeueAfter(_))) => (next, "requeue_after"),
            Ok(Ok(next @ Action::Backoff(_))) => (next, "error"),
            Ok(Err(kube::Error::Api(status)))
                if status.code == 404 && !self.context.exists(object).await =>
            {
                self.recheck_missing(object)
            }
            Ok(Err(error)) => {
                let after = self.context.record_failure(object);
                span.in_scope(
                    || tracing::warn!(%error, ?after, "the reconciliation did not finish"),
                );
                (Action::Backoff(after), "error")
            }
            Err(_) => {
                let after = self.context.record_failure(object);
                span.in_scope(|| tracing::error!(?after, "the reconciliation panicked"));
                self.context.metrics.panicked(&self.context.name);
                (Action::Backoff(after), "error")
            }
        };
        let uid = object.uid().unwrap_or_default();
        let failing = &self.context.metrics.failing;
        match next {
            Action::Backoff(_) => failing.add(&self.context.name, &uid),
            Action::AwaitChange | Action::RequeueAfter(_) => failing.forget(&uid),
        }
        let elapsed = started.elapsed();
        self.context
            .metrics
            .reconciled(&self.context.name, result, elapsed);
        next
    }

    /// Returns when an object that the API server does not find is reconciled again, and the result for the metrics.
    ///
    /// If the object is gone, its watch removes it from the store, and nothing is left to do. As long as the store has
    /// it, it may exist: while a CRD is being updated, an API server does not serve the kind for a moment and answers
    /// every request with 404.
    fn recheck_missing(&self, object: &DynamicObject) -> (Action, &'static str) {
        let uid = object.uid().unwrap_or_default();
        let stored = self.store.get(&ObjectKey::of(object));
        if stored.is_some_and(|stored| stored.uid() == uid) {
            let after = self.context.record_failure(object);
            (Action::RequeueAfter(after), "requeue_after")
        } else {
            (Action::AwaitChange, "success")
        }
    }
}
