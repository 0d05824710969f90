//! Bounded pool of values for regions and roles.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::access::Access;

/// Values by access, shared by clones. If there are too many, the one that was not used for longest is removed; it is created
/// anew when it is needed again.
pub(crate) struct AccessPool<T> {
    limit: usize,
    values: Arc<Mutex<HashMap<Access, Used<T>>>>,
}

struct Used<T> {
    value: T,
    at: Instant,
}

impl<T> Clone for AccessPool<T> {
    fn clone(&self) -> Self {
        Self {
            limit: self.limit,
            values: Arc::clone(&self.values),
        }
    }
}

impl<T: Clone> AccessPool<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            values: Arc::default(),
        }
    }

    /// Returns the value of an access, if there is one.
    pub(crate) fn get(&self, access: &Access) -> Option<T> {
        let mut values = self.values();
        let used = values.get_mut(access)?;
        used.at = Instant::now();
        Some(used.value.clone())
    }

    /// Adds the value of an access, and returns it, or the one that was added meanwhile.
    pub(crate) fn add(&self, access: Access, value: T) -> T {
        let mut values = self.values();
        let at = Instant::now();
        let used = values.entry(access).or_insert(Used { value, at });
        let value = used.value.clone();
        if values.len() > self.limit {
            let oldest = values.iter().min_by_key(|(_, used)| used.at);
            let oldest = oldest.map(|(access, _)| access.clone());
            oldest.and_then(|oldest| values.remove(&oldest));
        }
        value
    }

    fn values(&self) -> MutexGuard<'_, HashMap<Access, Used<T>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_value_that_was_not_used_for_longest_is_removed() {
        let region = |region: &str| Access {
            region: Some(region.to_owned()),
            role: None,
        };
        let pool = AccessPool::new(2);
        for (name, value) in [("a", 1), ("b", 2)] {
            assert_eq!(pool.add(region(name), value), value);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(pool.add(region("a"), 9), 1, "it was added before");
        assert_eq!(pool.get(&region("a")), Some(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        pool.add(region("c"), 3);
        let found = ["a", "b", "c"].map(|name| pool.get(&region(name)));
        assert_eq!(found, [Some(1), None, Some(3)]);
    }
}
