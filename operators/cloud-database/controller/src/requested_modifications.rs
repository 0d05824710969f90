//! Changes that were requested from RDS, with their outcome, so that a change that RDS rejects, or accepts but
//! does not apply, is not requested again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::modification::Modification;

/// Time after which the same change is requested again.
const RETRY_AFTER: Duration = Duration::from_hours(1);

/// Requested changes, by instance identifier.
#[derive(Default)]
pub(crate) struct RequestedModifications(Mutex<HashMap<String, Vec<Change>>>);

struct Change {
    modification: Modification,
    outcome: String,
    at: Instant,
}

impl RequestedModifications {
    /// Returns the outcome of a change, if it was requested recently.
    pub(crate) fn outcome(&self, id: &str, modification: &Modification) -> Option<String> {
        let mut requested = self.lock();
        let changes = requested.get_mut(id)?;
        changes.retain(|change| change.at.elapsed() < RETRY_AFTER);
        let mut changes = changes.iter();
        let change = changes.find(|change| change.modification == *modification)?;
        Some(change.outcome.clone())
    }

    pub(crate) fn remember(&self, id: &str, modification: Modification, outcome: String) {
        let mut requested = self.lock();
        let changes = requested.entry(id.to_owned()).or_default();
        changes.retain(|change| change.modification != modification);
        changes.push(Change {
            modification,
            outcome,
            at: Instant::now(),
        });
    }

    /// Forgets the changes of an instance that are no longer needed: the same change may be needed again later.
    pub(crate) fn retain(&self, id: &str, needed: &[Modification]) {
        let mut requested = self.lock();
        if let Some(changes) = requested.get_mut(id) {
            changes.retain(|change| needed.contains(&change.modification));
            if changes.is_empty() {
                requested.remove(id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Change>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_a_change_is_remembered_until_the_change_is_no_longer_needed() {
        let requested = RequestedModifications::default();
        let port = |port: i32| Modification {
            port: Some(port),
            ..Modification::default()
        };
        assert_eq!(requested.outcome("a", &port(1)), None);
        requested.remember("a", port(1), "rejected".to_owned());
        requested.remember("a", port(2), "accepted".to_owned());
        assert_eq!(
            requested.outcome("a", &port(1)).as_deref(),
            Some("rejected")
        );
        assert_eq!(
            requested.outcome("a", &port(2)).as_deref(),
            Some("accepted")
        );
        assert_eq!(requested.outcome("b", &port(1)), None);
        requested.retain("a", &[port(2)]);
        assert_eq!(requested.outcome("a", &port(1)), None);
        assert_eq!(
            requested.outcome("a", &port(2)).as_deref(),
            Some("accepted")
        );
        requested.retain("a", &[]);
        assert_eq!(requested.outcome("a", &port(2)), None);
    }
}
