//! Pool of servers that tests use one after the other.
//!
//! The tests of a process run at the same time, and each needs servers of its own. To start them takes more CPU time
//! than to use them, so a server whose test has succeeded is kept for the next one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of servers that are kept: as many tests end at about the same time.
const MOST_IDLE: usize = 4;

/// Servers of one type that no test uses.
pub(crate) struct Pool<T>(Mutex<State<T>>);

struct State<T> {
    users: usize,
    idle: Vec<T>,
}

/// A test that uses a pool. When the last one ends, the idle servers are stopped: nothing else would stop them, since
/// static values are never dropped.
pub(crate) struct PoolUser<T: 'static>(&'static Pool<T>);

impl<T> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            users: 0,
            idle: Vec::new(),
        }))
    }

    /// Registers a test as a user.
    pub(crate) fn enter(&'static self) -> PoolUser<T> {
        self.state().users += 1;
        PoolUser(self)
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> PoolUser<T> {
    /// Takes an idle server that satisfies the predicate.
    pub(crate) fn take(&self, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut state = self.0.state();
        let at = state.idle.iter().position(fits)?;
        Some(state.idle.swap_remove(at))
    }

    /// Keeps a server for the next test.
    pub(crate) fn keep(&self, server: T) {
        let mut state = self.0.state();
        state.idle.push(server);
        let dropped = (state.idle.len() > MOST_IDLE).then(|| state.idle.remove(0));
        drop(state);
        drop(dropped);
    }
}

impl<T> Drop for PoolUser<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.users -= 1;
        let idle = if state.users == 0 {
            std::mem::take(&mut state.idle)
        } else {
            Vec::new()
        };
        drop(state);
        drop(idle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_server_is_kept_for_the_next_test_until_the_last_one_ends() {
        static POOL: Pool<(u8, Arc<()>)> = Pool::new();
        let alive = Arc::new(());
        let (first, second) = (POOL.enter(), POOL.enter());
        first.keep((1, Arc::clone(&alive)));
        drop(first);
        assert!(second.take(|(id, _)| *id == 2).is_none());
        let taken = second.take(|(id, _)| *id == 1).expect("the server is kept");
        assert!(second.take(|_| true).is_none());
        second.keep(taken);
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&alive), 1, "the idle server is stopped");
    }

    #[test]
    fn the_number_of_idle_servers_is_bounded() {
        static POOL: Pool<usize> = Pool::new();
        let user = POOL.enter();
        (0..10).for_each(|server| user.keep(server));
        let mut left = 0;
        while user.take(|_| true).is_some() {
            left += 1;
        }
        assert_eq!(left, MOST_IDLE);
    }
}
