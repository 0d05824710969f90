//! Changes that were asked of RDS, with the outcome. One that RDS agrees to and does not make, or refuses, is not asked for
//! again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::modification::Modification;

/// The time after which a change is asked for again.
const ASK_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// The changes asked for, by instance identifier.
#[derive(Default)]
pub(crate) struct RejectedModifications(Mutex<HashMap<String, Vec<Change>>>);

struct Change {
    modification: Modification,
    outcome: String,
    at: Instant,
}

impl RejectedModifications {
    /// Returns the outcome of a change that was asked for not long ago.
    pub(crate) fn outcome(&self, id: &str, modification: &Modification) -> Option<String> {
        let mut asked = self.lock();
        let changes = asked.get_mut(id)?;
        changes.retain(|change| change.at.elapsed() < ASK_AGAIN_AFTER);
        let mut changes = changes.iter();
        let change = changes.find(|change| change.modification == *modification)?;
        Some(change.outcome.clone())
    }

    pub(crate) fn remember(&self, id: &str, modification: Modification, outcome: String) {
        let mut asked = self.lock();
        let changes = asked.entry(id.to_owned()).or_default();
        changes.retain(|change| change.modification != modification);
        changes.push(Change {
            modification,
            outcome,
            at: Instant::now(),
        });
    }

    /// Forgets the changes of an instance that are not needed any more: the same one may be needed again.
    pub(crate) fn retain(&self, id: &str, needed: &[Modification]) {
        let mut asked = self.lock();
        if let Some(changes) = asked.get_mut(id) {
            changes.retain(|change| needed.contains(&change.modification));
            if changes.is_empty() {
                asked.remove(id);
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
    fn the_outcome_of_each_change_is_remembered_until_its_instance_agrees() {
        let asked = RejectedModifications::default();
        let port = |port: i32| Modification {
            port: Some(port),
            ..Modification::default()
        };
        assert_eq!(asked.outcome("a", &port(1)), None);
        asked.remember("a", port(1), "refused".to_owned());
        asked.remember("a", port(2), "asked".to_owned());
        assert_eq!(asked.outcome("a", &port(1)).as_deref(), Some("refused"));
        assert_eq!(asked.outcome("a", &port(2)).as_deref(), Some("asked"));
        assert_eq!(asked.outcome("b", &port(1)), None);
        asked.retain("a", &[port(2)]);
        assert_eq!(asked.outcome("a", &port(1)), None);
        assert_eq!(asked.outcome("a", &port(2)).as_deref(), Some("asked"));
        asked.retain("a", &[]);
        assert_eq!(asked.outcome("a", &port(2)), None);
    }
}
