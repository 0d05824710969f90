//! Limit on concurrent requests: excess requests are rejected, and large ones do not block small ones.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::Span;

use crate::admission::error::RequestError;
use crate::body::{BufferedBody, MemoryBudget, Reservation};
use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;

/// Largest request that is validated on the async runtime's own threads. Larger ones would block other requests for
/// too long, and run on the blocking thread pool.
pub(crate) const QUICK_BYTES: usize = 64 << 10;

/// Step of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Handle the request on a thread of the async runtime, if the rules that it needs are compiled.
    OnRuntime,
    /// Only compile these rules.
    CompileRules,
    /// Handle the request on a thread of its own.
    OnThread,
}

/// Limits on requests and threads. Only requests that have arrived in full count.
#[derive(Clone)]
pub(crate) struct ConcurrencyLimit {
    requests: Arc<Semaphore>,
    /// Threads for large requests. More threads than cores would not finish them sooner, and each thread holds
    /// memory of its own.
    threads: Arc<Semaphore>,
    /// Thread that compiles rules. Requests that need them wait without a thread, also while all others are busy.
    compilation: Arc<Semaphore>,
    metrics: Metrics,
}

impl ConcurrencyLimit {
    pub(crate) fn new(limits: &Limits, metrics: &Metrics) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(
                limits.max_requests_inflight.min(Semaphore::MAX_PERMITS),
            )),
            threads: Arc::new(Semaphore::new(threads())),
            compilation: Arc::new(Semaphore::new(1)),
            metrics: metrics.clone(),
        }
    }

    /// Runs a handler on a body, within the limits on concurrent requests and on memory. `size` estimates the memory that
    /// the handler needs. Returns the memory that is still reserved, too.
    ///
    /// A handler returns `None` if the rules must be compiled first, and after it has compiled them.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        budget: &MemoryBudget,
        mut body: BufferedBody,
        size: fn(&[u8]) -> usize,
        handler: impl Fn(&[u8], Step) -> Result<Option<R>, RequestError> + Send + 'static,
    ) -> Result<(R, Option<Reservation>), RequestError> {
        let request = Arc::clone(&self.requests)
            .try_acquire_owned()
            .map_err(|_| {
                self.metrics.rejected(Limit::MaxRequestsInflight);
                RequestError::overloaded()
            })?;
        if body.bytes.len() <= QUICK_BYTES {
            if let Some(result) = handler(&body.bytes, Step::OnRuntime)? {
                return Ok((result, body.into_reservation()));
            }
            let compilation = Arc::clone(&self.compilation).acquire_owned().await;
            let compilation = compilation.map_err(|_| RequestError::overloaded())?;
            let compiling = tokio::task::spawn_blocking(move || {
                let compiled = handler(&body.bytes, Step::CompileRules);
                drop(compilation);
                compiled.map(|_| (handler, body))
            });
            let compiled = compiling.await.map_err(|_| RequestError::panicked())?;
            let (handler, body) = compiled?;
            let result = handler(&body.bytes, Step::OnRuntime)?;
            let result = result.ok_or_else(RequestError::panicked)?;
            return Ok((result, body.into_reservation()));
        }
        let needed = size(&body.bytes);
        budget.reserve_for_handling(&mut body, needed)?;
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.map_err(|_| RequestError::overloaded())?;
        let span = Span::current();
        // The thread cannot be cancelled: it counts against the limits until it ends, even if the client has gone.
        let handling = tokio::task::spawn_blocking(move || {
            let result = span.in_scope(|| handler(&body.bytes, Step::OnThread));
            drop((request, thread));
            let result = result?.ok_or_else(RequestError::panicked)?;
            Ok((result, body.into_reservation()))
        });
        handling
            .await
            .unwrap_or_else(|_| Err(RequestError::panicked()))
    }
}

fn threads() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(1, NonZeroUsize::get).max(4)
}
