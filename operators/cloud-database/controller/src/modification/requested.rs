//! Modifications that were requested from RDS, with what RDS has answered, so that a modification that it rejects, or
//! accepts and does not apply, is not requested again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::modification::Modification;

/// Time after which a modification that RDS has accepted and not applied is requested again.
const ACCEPTED_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// Answer of RDS to a modification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// With the code and the message of RDS.
    Rejected {
        message: String,
        /// If true, the storage was changed a short time ago, and RDS accepts the change later.
        is_cooldown: bool,
    },
}

/// Requested groups of fields, by instance identifier.
#[derive(Default)]
pub(crate) struct RequestedModifications(Mutex<HashMap<String, Vec<Requested>>>);

struct Requested {
    group: Modification,
    answer: Answer,
    again_at: Instant,
}

impl RequestedModifications {
    /// Returns the answer to a group of fields, if it was requested recently.
    pub(crate) fn answer(&self, id: &str, group: &Modification) -> Option<Answer> {
        let mut requested = self.lock();
        let all = requested.get_mut(id)?;
        let now = Instant::now();
        all.retain(|it| it.again_at > now);
        let found = all.iter().find(|it| it.group == *group)?;
        Some(found.answer.clone())
    }

    pub(crate) fn accepted(&self, id: &str, group: Modification) {
        self.remember(id, group, Answer::Accepted, ACCEPTED_AGAIN_AFTER);
    }

    pub(crate) fn rejected(
        &self,
        id: &str,
        group: Modification,
        answer: Answer,
        again_after: Duration,
    ) {
        self.remember(id, group, answer, again_after);
    }

    fn remember(&self, id: &str, group: Modification, answer: Answer, again_after: Duration) {
        let mut requested = self.lock();
        let all = requested.entry(id.to_owned()).or_default();
        all.retain(|it| it.group != group);
        all.push(Requested {
            group,
            answer,
            again_at: Instant::now() + again_after,
        });
    }

    /// Forgets the groups of an instance that are no longer needed: they may be needed again later.
    pub(crate) fn retain(&self, id: &str, needed: &[Modification]) {
        let mut requested = self.lock();
        if let Some(all) = requested.get_mut(id) {
            all.retain(|it| needed.contains(&it.group));
            if all.is_empty() {
                requested.remove(id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Requested>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: i32) -> Modification {
        Modification {
            port: Some(port),
            ..Modification::default()
        }
    }

    #[test]
    fn an_answer_is_remembered_until_the_modification_is_no_longer_needed() {
        let requested = RequestedModifications::default();
        let rejected = Answer::Rejected {
            message: "no".to_owned(),
            is_cooldown: false,
        };
        assert_eq!(requested.answer("a", &port(1)), None);
        let hour = Duration::from_hours(1);
        requested.rejected("a", port(1), rejected.clone(), hour);
        requested.accepted("a", port(2));
        assert_eq!(requested.answer("a", &port(1)), Some(rejected));
        assert_eq!(requested.answer("a", &port(2)), Some(Answer::Accepted));
        assert_eq!(requested.answer("b", &port(1)), None);
        requested.retain("a", &[port(2)]);
        assert_eq!(requested.answer("a", &port(1)), None);
        assert_eq!(requested.answer("a", &port(2)), Some(Answer::Accepted));
        requested.retain("a", &[]);
        assert_eq!(requested.answer("a", &port(2)), None);
    }

    #[test]
    fn a_rejected_modification_is_requested_again_after_its_time() {
        let requested = RequestedModifications::default();
        let rejected = Answer::Rejected {
            message: "not now".to_owned(),
            is_cooldown: true,
        };
        requested.rejected("a", port(1), rejected, Duration::ZERO);
        assert_eq!(requested.answer("a", &port(1)), None);
    }
}
