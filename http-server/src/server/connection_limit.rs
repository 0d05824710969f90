//! Limit on open connections. When it is reached, a new connection evicts an old one: the one that has been
//! idle for longest, or else the one with the oldest incomplete request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

/// All open connections.
#[derive(Clone)]
pub(crate) struct ConnectionPool {
    max: usize,
    state: Arc<Mutex<PoolState>>,
}

#[derive(Default)]
struct PoolState {
    count: usize,
    /// Connections that may be evicted, in this order: connections without a request, by the end of their last one,
    /// then connections with incomplete requests only, by the time at which these began.
    waiting: BTreeMap<Slot, Arc<CloseSignal>>,
    next: u64,
}

/// Eviction signal of one connection. It is sent at most once.
#[derive(Default)]
struct CloseSignal {
    notify: Notify,
    is_sent: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Idle(u64),
    ReadingRequest(u64),
}

/// Open connection. It is removed from [`ConnectionPool`] when this is dropped.
pub(crate) struct Connection {
    pool: ConnectionPool,
    closing: Arc<CloseSignal>,
    header_began: Notify,
    response_began: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: usize,
    /// Number of these requests that have not arrived in full.
    incomplete: usize,
    /// Time at which an incomplete header began to arrive.
    header: Option<Instant>,
    /// Position in the order of eviction. `None` if the connection cannot be evicted.
    slot: Option<Slot>,
    /// Responses whose last bytes are not written, with their beginnings.
    responses: BTreeSet<(Instant, u64)>,
    /// Number of responses so far.
    response_count: u64,
}

impl ConnectionPool {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            state: Arc::default(),
        }
    }

    /// Adds a connection, and returns whether another one was evicted for it. Returns `None` if the limit is
    /// reached and all connections have requests that are being answered.
    pub(crate) fn try_admit(&self) -> Option<(Connection, bool)> {
        let mut pool = self.lock();
        let is_full = pool.count >= self.max;
        if is_full {
            let (_, evicted) = pool.waiting.pop_first()?;
            evicted.is_sent.store(true, Ordering::Relaxed);
            evicted.notify.notify_one();
        }
        pool.count += 1;
        let closing = Arc::new(CloseSignal::default());
        let slot = pool.add(Slot::Idle, &closing);
        let connection = Connection {
            pool: self.clone(),
            closing,
            header_began: Notify::new(),
            response_began: Notify::new(),
            state: Mutex::new(State {
                slot: Some(slot),
                ..State::default()
            }),
        };
        Some((connection, is_full))
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn add(&mut self, slot: fn(u64) -> Slot, closing: &Arc<CloseSignal>) -> Slot {
        let slot = slot(self.next);
        self.next += 1;
        self.waiting.insert(slot, Arc::clone(closing));
        slot
    }
}

impl Connection {
    /// Resolves when the connection is evicted.
    pub(crate) async fn evicted(&self) {
        self.closing.notify.notified().await;
    }

    /// Records that bytes have arrived. If no request is in progress, they belong to a header.
    pub(crate) fn record_activity(&self) {
        let mut state = self.state();
        if state.requests == 0 && state.header.is_none() {
            state.header = Some(Instant::now());
            self.header_began.notify_one();
        }
    }

    fn header_since(&self) -> Option<Instant> {
        self.state().header
    }

    /// Resolves when a header has been arriving for longer than `deadline`.
    pub(crate) async fn header_is_late(&self, deadline: Duration) {
        loop {
            self.header_began.notified().await;
            while let Some(started) = self.header_since() {
                tokio::time::sleep_until(started + deadline).await;
                if self.header_since() == Some(started) {
                    return;
                }
            }
        }
    }

    /// Starts a request. It ends when the returned value is dropped.
    pub(crate) fn start_request(self: &Arc<Self>) -> ActiveRequest {
        let mut state = self.state();
        state.requests += 1;
        state.incomplete += 1;
        state.header = None;
        self.update_slot(&mut state);
        drop(state);
        ActiveRequest {
            connection: Arc::clone(self),
            is_received: AtomicBool::new(false),
        }
    }

    /// Starts to write a response. It ends when the returned value is dropped.
    pub(crate) fn start_response(self: &Arc<Self>) -> ActiveResponse {
        let mut state = self.state();
        state.response_count += 1;
        let key = (Instant::now(), state.response_count);
        state.responses.insert(key);
        drop(state);
        self.response_began.notify_one();
        ActiveResponse {
            connection: Arc::clone(self),
            key,
        }
    }

    fn oldest_response(&self) -> Option<(Instant, u64)> {
        self.state().responses.first().copied()
    }

    /// Resolves when a response is being written for longer than `deadline`.
    pub(crate) async fn response_is_late(&self, deadline: Duration) {
        loop {
            self.response_began.notified().await;
            while let Some(oldest) = self.oldest_response() {
                tokio::time::sleep_until(oldest.0 + deadline).await;
                if self.oldest_response() == Some(oldest) {
                    return;
                }
            }
        }
    }

    /// Updates the position of the connection in the order of eviction.
    fn update_slot(&self, state: &mut State) {
        let is_incomplete = state.requests == state.incomplete;
        let slot: Option<fn(u64) -> Slot> = match (state.requests, state.slot) {
            (0, _) => Some(Slot::Idle),
            // Keep the position: starting more requests must not postpone the eviction.
            (_, Some(Slot::ReadingRequest(_))) if is_incomplete => return,
            (_, _) => is_incomplete.then_some(Slot::ReadingRequest),
        };
        let mut pool = self.pool.lock();
        if let Some(before) = state.slot.take() {
            pool.waiting.remove(&before);
        }
        let slot = slot.filter(|_| !self.closing.is_sent.load(Ordering::Relaxed));
        state.slot = slot.map(|slot| pool.add(slot, &self.closing));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Request in progress. It ends when this is dropped, also if it is cancelled. The server adds an
/// `Arc<ActiveRequest>` to the extensions of each request.
pub struct ActiveRequest {
    connection: Arc<Connection>,
    is_received: AtomicBool,
}

impl ActiveRequest {
    /// Marks the request as received in full. From now on it is being answered.
    pub fn mark_request_received(&self) {
        if !self.is_received.swap(true, Ordering::Relaxed) {
            let mut state = self.connection.state();
            state.incomplete -= 1;
            self.connection.update_slot(&mut state);
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.connection.state();
        state.requests -= 1;
        if !*self.is_received.get_mut() {
            state.incomplete -= 1;
        }
        self.connection.update_slot(&mut state);
    }
}

/// Response that is being written. It ends when this is dropped, which is when HTTP has passed on its last byte.
pub(crate) struct ActiveResponse {
    connection: Arc<Connection>,
    key: (Instant, u64),
}

impl Drop for ActiveResponse {
    fn drop(&mut self) {
        self.connection.state().responses.remove(&self.key);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let slot = self.state().slot.take();
        let mut pool = self.pool.lock();
        pool.count -= 1;
        if let Some(slot) = slot {
            pool.waiting.remove(&slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_idle_connection_is_evicted_and_none_with_an_active_request() {
        let connections = ConnectionPool::new(2);
        let (first, _) = connections.try_admit().expect("room");
        let (second, evicts) = connections.try_admit().expect("room");
        assert!(!evicts);
        // The first has had a request since, so that the second has been idle for longer.
        let first = Arc::new(first);
        drop(first.start_request());
        let (third, evicts) = connections.try_admit().expect("one is evicted");
        assert!(evicts);
        second.evicted().await;
        drop(second);
        let third = Arc::new(third);
        let (first_at_work, third_at_work) = (first.start_request(), third.start_request());
        first_at_work.mark_request_received();
        third_at_work.mark_request_received();
        assert!(
            connections.try_admit().is_none(),
            "both have active requests"
        );
        drop(third_at_work);
        assert!(connections.try_admit().is_some());
        third.evicted().await;
    }

    #[tokio::test]
    async fn if_none_is_idle_the_connection_with_the_oldest_incomplete_request_is_evicted() {
        let connections = ConnectionPool::new(2);
        let enter = || {
            connections
                .try_admit()
                .map(|(connection, _)| Arc::new(connection))
        };
        let (first, second) = (enter().expect("room"), enter().expect("room"));
        let (slow, quick) = (second.start_request(), first.start_request());
        // Another stream of the same connection does not change its position.
        let more = second.start_request();
        drop(more);
        quick.mark_request_received();
        let third = enter().expect("one is evicted");
        second.evicted().await;
        drop((slow, second));
        let arriving = third.start_request();
        drop(quick);
        let fourth = enter().expect("one is evicted");
        first.evicted().await;
        drop(first);
        let (_at_work, arrived) = (arriving, fourth.start_request());
        arrived.mark_request_received();
        drop(enter().expect("one is evicted"));
        third.evicted().await;
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_header_that_does_not_become_a_request_times_out() {
        let connections = ConnectionPool::new(1);
        let connection = Arc::new(connections.try_admit().expect("room").0);
        let deadline = Duration::from_secs(10);
        let is_late = async || {
            let late = connection.header_is_late(deadline);
            tokio::time::timeout(Duration::from_mins(1), late)
                .await
                .is_ok()
        };
        assert!(!is_late().await, "nothing has arrived");
        connection.record_activity();
        drop(connection.start_request());
        assert!(!is_late().await, "the header became a request");
        let at_work = connection.start_request();
        connection.record_activity();
        drop(at_work);
        assert!(!is_late().await, "the bytes belonged to a body");
        connection.record_activity();
        assert!(is_late().await);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_response_that_is_not_written_in_time_is_late() {
        let connections = ConnectionPool::new(1);
        let connection = Arc::new(connections.try_admit().expect("room").0);
        let deadline = Duration::from_secs(10);
        let is_late = async || {
            let late = connection.response_is_late(deadline);
            tokio::time::timeout(Duration::from_mins(1), late)
                .await
                .is_ok()
        };
        assert!(!is_late().await, "there is no response");
        drop(connection.start_response());
        assert!(!is_late().await, "the response was written");
        let slow = connection.start_response();
        drop(connection.start_response());
        assert!(is_late().await, "one of two was written");
        drop(slow);
        assert!(!is_late().await);
    }
}
