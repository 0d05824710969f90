//! The connections that stand, so that a new one always finds room: where there is none left, the one
//! that has been idle for longest is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

/// Every connection.
#[derive(Clone)]
pub(crate) struct Connections {
    most: usize,
    standing: Arc<Mutex<Standing>>,
}

#[derive(Default)]
struct Standing {
    count: usize,
    /// Those without a request, by when they last had one.
    idle: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

/// One connection; it leaves when this is dropped.
pub(crate) struct Connection {
    connections: Connections,
    closing: Arc<Notify>,
    header_began: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: usize,
    /// Since when a header has been arriving.
    header: Option<Instant>,
    /// Its place among the idle ones.
    place: Option<u64>,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            standing: Arc::default(),
        }
    }

    /// Takes a connection in, and tells whether another one had to make room. Where all have requests
    /// under way, there is no room.
    pub(crate) fn enter(&self) -> Option<(Connection, bool)> {
        let mut standing = self.lock();
        let is_full = standing.count >= self.most;
        if is_full {
            let (_, evicted) = standing.idle.pop_first()?;
            evicted.notify_one();
        }
        standing.count += 1;
        let closing = Arc::new(Notify::new());
        let place = standing.add_idle(&closing);
        let connection = Connection {
            connections: self.clone(),
            closing,
            header_began: Notify::new(),
            state: Mutex::new(State {
                place: Some(place),
                ..State::default()
            }),
        };
        Some((connection, is_full))
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    fn add_idle(&mut self, closing: &Arc<Notify>) -> u64 {
        let place = self.next;
        self.next += 1;
        self.idle.insert(place, Arc::clone(closing));
        place
    }
}

impl Connection {
    /// Resolves when the connection has to make room.
    pub(crate) async fn evicted(&self) {
        self.closing.notified().await;
    }

    /// Something has arrived: without a request under way, it is a header.
    pub(crate) fn arrived(&self) {
        let mut state = self.state();
        if state.requests == 0 && state.header.is_none() {
            state.header = Some(Instant::now());
            self.header_began.notify_one();
        }
    }

    fn header_since(&self) -> Option<Instant> {
        self.state().header
    }

    /// Resolves when a header has been arriving for longer than that.
    pub(crate) async fn header_is_late(&self, deadline: Duration) {
        loop {
            self.header_began.notified().await;
            while let Some(began) = self.header_since() {
                tokio::time::sleep_until(began + deadline).await;
                if self.header_since() == Some(began) {
                    return;
                }
            }
        }
    }

    /// A request begins, and ends when what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> AtWork {
        let mut state = self.state();
        state.requests += 1;
        state.header = None;
        if let Some(place) = state.place.take() {
            self.connections.lock().idle.remove(&place);
        }
        drop(state);
        AtWork(Arc::clone(self))
    }

    fn end(&self) {
        let mut state = self.state();
        state.requests -= 1;
        if state.requests == 0 {
            state.place = Some(self.connections.lock().add_idle(&self.closing));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way, however it ends.
pub(crate) struct AtWork(Arc<Connection>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let place = self.state().place.take();
        let mut standing = self.connections.lock();
        standing.count -= 1;
        if let Some(place) = place {
            standing.idle.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_idle_connection_makes_room_and_none_with_a_request_does() {
        let connections = Connections::new(2);
        let (first, _) = connections.enter().expect("room");
        let (second, evicts) = connections.enter().expect("room");
        assert!(!evicts);
        // The first has had a request since, so that the second has been idle for longer.
        let first = Arc::new(first);
        drop(first.begin());
        let (third, evicts) = connections.enter().expect("room is made");
        assert!(evicts);
        second.evicted().await;
        drop(second);
        let third = Arc::new(third);
        let (_first_at_work, third_at_work) = (first.begin(), third.begin());
        assert!(connections.enter().is_none(), "both are at work");
        drop(third_at_work);
        assert!(connections.enter().is_some());
        third.evicted().await;
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_header_that_no_request_comes_of_is_late() {
        let connections = Connections::new(1);
        let connection = Arc::new(connections.enter().expect("room").0);
        let deadline = Duration::from_secs(10);
        let is_late = async || {
            let late = connection.header_is_late(deadline);
            tokio::time::timeout(Duration::from_mins(1), late)
                .await
                .is_ok()
        };
        assert!(!is_late().await, "nothing has arrived");
        connection.arrived();
        drop(connection.begin());
        assert!(!is_late().await, "a request came of it");
        let at_work = connection.begin();
        connection.arrived();
        drop(at_work);
        assert!(!is_late().await, "that was a body");
        connection.arrived();
        assert!(is_late().await);
    }
}
