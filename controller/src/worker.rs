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

use crate::cycle::{Cycle, Next};
use crate::directory::shown;
use crate::kept::{Key, Store, key_of};
use crate::queue::Queue;
use crate::reconcile::Reconcile;
use crate::related::Watched;

/// Largest fraction by which a delay is lengthened.
const JITTER: f64 = 0.1;

/// One worker that processes keys from the queue.
pub(crate) struct Worker<'a, R> {
    pub(crate) cycle: &'a Cycle<R>,
    pub(crate) store: Store,
    pub(crate) related: &'a [Watched],
    pub(crate) queue: &'a Queue<Key>,
}

impl<R: Reconcile> Worker<'_, R> {
    /// Processes keys until the queue is closed, once all caches are filled.
    pub(crate) async fn work(&self, mut incomplete: watch::Receiver<usize>) {
        tokio::select! {
            _ = incomplete.wait_for(|watches| *watches == 0) => {}
            () = self.queue.closed() => {}
        }
        while let Some(key) = self.queue.next().await {
            let next = match self.stored(&key) {
                Some(object) => {
                    let next = self.reconcile(&object).await;
                    let uid = object.uid().unwrap_or_default();
                    let stored = self.store.get(&key);
                    if stored.is_none_or(|stored| stored.uid() != uid) {
                        // The object was deleted, and its state removed, before the reconciliation ended.
                        self.cycle.forget(&uid);
                    }
                    next
                }
                None => Next::OnChange,
            };
            let again_after = match next {
                Next::OnChange => None,
                // The jitter spreads objects that were reconciled together.
                Next::After(time) | Next::Failed(time) => {
                    Some(time.mul_f64(1.0 + JITTER * fastrand::f64()))
                }
            };
            self.queue.done(&key, again_after);
            // A reconciliation that finds nothing to do never waits, and at a start there are thousands of them:
            // the other tasks on this thread, such as the renewal of the lease, run in between.
            yield_now().await;
        }
    }

    fn stored(&self, key: &Key) -> Option<Arc<DynamicObject>> {
        let stored = self.store.get(key)?.open();
        Some(self.cycle.written.or_later(Arc::new(stored)))
    }

    /// Reconciles an object once. A failure becomes a back-off.
    pub(crate) async fn reconcile(&self, object: &DynamicObject) -> Next {
        let started = Instant::now();
        let span = tracing::info_span!(
            "reconcile",
            controller = &self.cycle.controller,
            // Not `name`: that is the name of the span.
            object = shown(&key_of(object)),
            generation = object.metadata.generation,
            // The same in all log messages of one reconciliation, and in no other.
            reconcile_id = format!("{:016x}", fastrand::u64(..)),
        );
        let _active = self.cycle.metrics.working(&self.cycle.name);
        let round = self.cycle.run(object, self.related);
        let round = AssertUnwindSafe(round.instrument(span.clone()));
        let (next, result) = match round.catch_unwind().await {
            Ok(Ok(Next::OnChange)) => (Next::OnChange, "success"),
            Ok(Ok(next @ Next::After(_))) => (next, "requeue_after"),
            Ok(Ok(next @ Next::Failed(_))) => (next, "error"),
            // The object is gone: a deletion has nothing left to wait for.
            Ok(Err(kube::Error::Api(status)))
                if status.code == 404 && !self.cycle.stands(object).await =>
            {
                (Next::OnChange, "success")
            }
            Ok(Err(error)) => {
                let after = self.cycle.after_failure(object);
                span.in_scope(
                    || tracing::warn!(%error, ?after, "the reconciliation did not finish"),
                );
                (Next::Failed(after), "error")
            }
            Err(_) => {
                let after = self.cycle.after_failure(object);
                span.in_scope(|| tracing::error!(?after, "the reconciliation panicked"));
                self.cycle.metrics.panicked(&self.cycle.name);
                (Next::Failed(after), "error")
            }
        };
        let uid = object.uid().unwrap_or_default();
        let failing = &self.cycle.metrics.failing;
        match next {
            Next::Failed(_) => failing.add(&self.cycle.name, &uid),
            Next::OnChange | Next::After(_) => failing.forget(&uid),
        }
        let elapsed = started.elapsed();
        self.cycle.metrics.round(&self.cycle.name, result, elapsed);
        next
    }
}
