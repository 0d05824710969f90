//! Memory of a process about an instance, between two steps.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::credentials::known_passwords::KnownPasswords;
use crate::exploration::world::PASSWORDS;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::modification::requested::RequestedModifications;
use crate::instance::modification::unaccepted_changes::UnacceptedChanges;

/// Memory of a process. A process that has just started has none.
#[derive(Default)]
pub(super) struct Memory {
    requested: RequestedModifications,
    unaccepted: UnacceptedChanges,
    passwords: KnownPasswords,
    unseen_since: HashMap<String, Instant>,
    unowned_since: HashMap<String, Instant>,
    failing_since: HashMap<String, Instant>,
    first_creations: HashMap<String, tokio::time::Instant>,
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self {
            requested: self.requested.copy(),
            unaccepted: self.unaccepted.copy(),
            passwords: self.passwords.copy(),
            unseen_since: self.unseen_since.clone(),
            unowned_since: self.unowned_since.clone(),
            failing_since: self.failing_since.clone(),
            first_creations: self.first_creations.clone(),
        }
    }
}

fn copy<T: Clone>(value: &Mutex<T>) -> T {
    value.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Memory {
    /// Returns what a reconciler remembers.
    pub(super) fn from_reconciler(reconciler: &InstanceReconciler) -> Self {
        Self {
            requested: reconciler.requested.copy(),
            unaccepted: reconciler.unaccepted.copy(),
            passwords: reconciler.passwords.copy(),
            unseen_since: copy(&reconciler.unseen_since),
            unowned_since: copy(&reconciler.unowned_since),
            failing_since: copy(&reconciler.failing_since),
            first_creations: copy(&reconciler.first_creations),
        }
    }

    /// Lets a reconciler that remembers nothing remember this.
    pub(super) fn restore(self, reconciler: &mut InstanceReconciler) {
        reconciler.requested = self.requested;
        reconciler.unaccepted = self.unaccepted;
        reconciler.passwords = self.passwords;
        reconciler.unseen_since = Mutex::new(self.unseen_since);
        reconciler.unowned_since = Mutex::new(self.unowned_since);
        reconciler.failing_since = Mutex::new(self.failing_since);
        reconciler.first_creations = Mutex::new(self.first_creations);
    }

    /// Returns a text that is equal for memories that lead to the same steps at their times.
    pub(super) fn digest(&self, now: Instant, oldest: u64) -> String {
        let ages = |times: &HashMap<String, Instant>| {
            let mut ages: Vec<_> = times
                .iter()
                .map(|(id, since)| (id.clone(), now.duration_since(*since).as_secs().min(oldest)))
                .collect();
            ages.sort();
            ages
        };
        let mut first: Vec<_> = self.first_creations.keys().collect();
        first.sort();
        format!(
            "{:?}{:?}{:?}{first:?}{}{}{:?}",
            ages(&self.unseen_since),
            ages(&self.unowned_since),
            ages(&self.failing_since),
            self.requested.digest(now, oldest),
            self.unaccepted.digest(),
            self.passwords.known(&PASSWORDS),
        )
    }
}
