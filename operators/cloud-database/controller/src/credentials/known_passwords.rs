//! Passwords that instances are known to have, so that a Secret that was changed otherwise, for example its labels, leads
//! to no call.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// Keyed hashes of passwords, by instance identifier. The key is random and never leaves the process.
#[derive(Default)]
pub(crate) struct KnownPasswords {
    key: RandomState,
    hashes: Mutex<HashMap<String, u64>>,
}

impl KnownPasswords {
    /// Records that an instance has a password.
    pub(crate) fn record(&self, id: &str, password: &str) {
        let hash = self.key.hash_one(password);
        self.hashes().insert(id.to_owned(), hash);
    }

    /// Returns true if an instance is known to have a password.
    pub(crate) fn has(&self, id: &str, password: &str) -> bool {
        self.hashes().get(id) == Some(&self.key.hash_one(password))
    }

    pub(crate) fn forget(&self, id: &str) {
        self.hashes().remove(id);
    }

    #[cfg(test)]
    pub(crate) fn copy(&self) -> Self {
        Self {
            key: self.key.clone(),
            hashes: Mutex::new(self.hashes().clone()),
        }
    }

    /// Returns those of some passwords that instances are known to have, by the identifiers of these.
    #[cfg(test)]
    pub(crate) fn known<'a>(&self, passwords: &[&'a str]) -> Vec<(String, &'a str)> {
        let ids: Vec<_> = self.hashes().keys().cloned().collect();
        let mut known = Vec::new();
        for password in passwords {
            let with_it = ids.iter().filter(|id| self.has(id, password));
            known.extend(with_it.map(|id| (id.clone(), *password)));
        }
        known.sort();
        known
    }

    fn hashes(&self) -> std::sync::MutexGuard<'_, HashMap<String, u64>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_for_one_instance() {
        let known = KnownPasswords::default();
        known.record("a", "secret-1");
        assert!(known.has("a", "secret-1"));
        assert!(!known.has("a", "secret-2"));
        assert!(!known.has("b", "secret-1"));
        known.forget("a");
        assert!(!known.has("a", "secret-1"));
    }
}
