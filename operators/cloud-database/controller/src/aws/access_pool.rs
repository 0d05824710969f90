//! Values for the regions and roles of objects.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::aws::access::Access;

/// Values by access, each for as long as a user of it exists.
pub(crate) struct AccessPool<U, T>(Mutex<State<U, T>>);

struct State<U, T> {
    values: HashMap<Access, (T, HashSet<U>)>,
    accesses: HashMap<U, Access>,
}

impl<U: Clone + Eq + Hash, T: Clone> AccessPool<U, T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            values: HashMap::new(),
            accesses: HashMap::new(),
        }))
    }

    /// Returns the value of an access for a user, if there is one.
    pub(crate) fn get(&self, user: &U, access: &Access) -> Option<T> {
        let mut state = self.lock();
        let (value, users) = state.values.get_mut(access)?;
        let value = value.clone();
        if users.insert(user.clone()) {
            state.leave(user);
            state.accesses.insert(user.clone(), access.clone());
        }
        Some(value)
    }

    /// Adds the value of an access, and returns it, or the one that was added meanwhile.
    pub(crate) fn add(&self, user: &U, access: Access, value: T) -> T {
        let mut state = self.lock();
        if state.accesses.get(user) != Some(&access) {
            state.leave(user);
        }
        let (value, users) = state
            .values
            .entry(access.clone())
            .or_insert_with(|| (value, HashSet::new()));
        let value = value.clone();
        users.insert(user.clone());
        state.accesses.insert(user.clone(), access);
        value
    }

    /// Records that a user does not exist any more.
    pub(crate) fn remove(&self, user: &U) {
        self.lock().leave(user);
    }

    fn lock(&self) -> MutexGuard<'_, State<U, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<U: Eq + Hash, T> State<U, T> {
    /// Removes a user from the access that it had before, and the value if it was the last one.
    fn leave(&mut self, user: &U) {
        let Some(access) = self.accesses.remove(user) else {
            return;
        };
        if let Some((_, users)) = self.values.get_mut(&access) {
            users.remove(user);
            if users.is_empty() {
                self.values.remove(&access);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(region: &str) -> Access {
        Access {
            region: Some(region.to_owned()),
            role: None,
        }
    }

    #[test]
    fn a_value_lives_as_long_as_one_of_its_users() {
        let pool = AccessPool::new();
        assert_eq!(pool.get(&"x", &region("a")), None);
        assert_eq!(pool.add(&"x", region("a"), 1), 1);
        assert_eq!(pool.add(&"y", region("a"), 9), 1, "it was added before");
        assert_eq!(pool.get(&"y", &region("a")), Some(1));
        pool.remove(&"x");
        assert_eq!(pool.get(&"y", &region("a")), Some(1));
        // A user has one access at a time.
        assert_eq!(pool.add(&"y", region("b"), 2), 2);
        assert_eq!(pool.get(&"z", &region("a")), None, "it has no user");
        assert_eq!(pool.get(&"z", &region("b")), Some(2));
        pool.remove(&"y");
        pool.remove(&"z");
        let state = pool.lock();
        assert!(state.values.is_empty() && state.accesses.is_empty());
    }
}
