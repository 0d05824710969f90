//! Modifications that were requested from RDS, with what RDS has answered, so that a modification that it rejects, or
//! accepts and does not apply, is not requested again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockstep_cloud_database_api::ApplyChanges;

use crate::clock;
use crate::instance::modification::Modification;

/// Time after which a modification that RDS has accepted and not applied is requested again.
const ACCEPTED_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// The same for one that waits for the maintenance window, which opens once a week. RDS does not report all that waits.
const IN_WINDOW_AGAIN_AFTER: Duration = Duration::from_hours(8 * 24);

/// Answer of RDS to a modification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// RDS accepts it when the instance has another status.
    Busy {
        /// Message of RDS.
        message: String,
        /// If true, the instance has a status in which RDS accepts modifications.
        is_unexpected: bool,
    },
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

#[derive(Clone)]
struct Requested {
    group: Modification,
    when: ApplyChanges,
    answer: Answer,
    again_at: Instant,
    /// Number of unexpected answers in succession that RDS accepts it in another status.
    busy: u32,
}

impl RequestedModifications {
    /// Returns the answer to a group of fields, if it was requested recently.
    pub(crate) fn answer(
        &self,
        id: &str,
        group: &Modification,
        when: ApplyChanges,
    ) -> Option<Answer> {
        let requested = self.lock();
        let now = clock::instant();
        let mut all = requested.get(id)?.iter().filter(|it| it.again_at > now);
        let found = all.find(|it| it.group == *group && it.when == when)?;
        Some(found.answer.clone())
    }

    /// Returns how often in succession RDS has answered unexpectedly that it accepts a group of fields in another status.
    pub(crate) fn busy_answers(&self, id: &str, group: &Modification) -> u32 {
        let requested = self.lock();
        let mut all = requested.get(id).into_iter().flatten();
        let found = all.find(|it| it.group == *group);
        found.map_or(0, |it| it.busy)
    }

    /// Remembers that RDS has accepted a group of fields, to be applied at this time. If it `waits`, that is in the maintenance
    /// window.
    pub(crate) fn accepted(&self, id: &str, group: Modification, when: ApplyChanges, waits: bool) {
        let again_after = if waits {
            IN_WINDOW_AGAIN_AFTER
        } else {
            ACCEPTED_AGAIN_AFTER
        };
        self.remember(id, group, when, Answer::Accepted, again_after);
    }

    /// Remembers an answer to a group of fields until it is requested again.
    pub(crate) fn remember(
        &self,
        id: &str,
        group: Modification,
        when: ApplyChanges,
        answer: Answer,
        again_after: Duration,
    ) {
        let mut requested = self.lock();
        let all = requested.entry(id.to_owned()).or_default();
        let before = all.iter().find(|it| it.group == group);
        let busy = match answer {
            Answer::Busy {
                is_unexpected: true,
                ..
            } => before.map_or(0, |it| it.busy) + 1,
            Answer::Busy { .. } | Answer::Accepted | Answer::Rejected { .. } => 0,
        };
        all.retain(|it| it.group != group);
        all.push(Requested {
            group,
            when,
            answer,
            again_at: clock::instant() + again_after,
            busy,
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

    /// Forgets what RDS has not accepted, so that it is requested again at once.
    pub(crate) fn forget_refusals(&self, id: &str) {
        if let Some(all) = self.lock().get_mut(id) {
            all.retain(|it| it.answer == Answer::Accepted);
        }
    }

    /// Forgets that RDS has refused changes of the storage because of the last one.
    pub(crate) fn forget_cooldown(&self, id: &str) {
        let is_cooldown = |answer: &Answer| {
            matches!(
                answer,
                Answer::Rejected {
                    is_cooldown: true,
                    ..
                }
            )
        };
        if let Some(all) = self.lock().get_mut(id) {
            all.retain(|requested| !is_cooldown(&requested.answer));
        }
    }

    /// Forgets that RDS has accepted groups with one of these fields: it has taken them back.
    pub(crate) fn forget_accepted(&self, id: &str, fields: &[&str]) {
        if let Some(all) = self.lock().get_mut(id) {
            all.retain(|it| {
                let is_of_fields = it.group.fields().iter().any(|it| fields.contains(it));
                it.answer != Answer::Accepted || !is_of_fields
            });
        }
    }

    #[cfg(test)]
    pub(crate) fn copy(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    /// Returns a text that is equal for equal answers that are valid for the same time.
    #[cfg(test)]
    pub(crate) fn digest(&self, now: Instant, longest: u64) -> String {
        let requested = self.lock();
        let mut texts: Vec<_> = requested
            .iter()
            .flat_map(|(id, all)| all.iter().map(move |requested| (id, requested)))
            .map(|(id, it)| {
                let left = it
                    .again_at
                    .saturating_duration_since(now)
                    .as_secs()
                    .min(longest);
                let (fields, answer, busy) = (it.group.fields(), &it.answer, it.busy.min(3));
                format!("{id}{fields:?}{answer:?}{left}{busy}")
            })
            .collect();
        texts.sort();
        texts.concat()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Requested>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Port;

    fn port(port: i32) -> Modification {
        Modification::with::<Port>(port)
    }

    fn busy(is_unexpected: bool) -> Answer {
        Answer::Busy {
            message: "not now".to_owned(),
            is_unexpected,
        }
    }

    const NOW: ApplyChanges = ApplyChanges::Immediately;

    #[test]
    fn an_answer_is_remembered_until_the_modification_is_no_longer_needed() {
        let requested = RequestedModifications::default();
        let rejected = Answer::Rejected {
            message: "no".to_owned(),
            is_cooldown: false,
        };
        let answer = |id: &str, number: i32| requested.answer(id, &port(number), NOW);
        assert_eq!(answer("a", 1), None);
        let hour = Duration::from_hours(1);
        requested.remember("a", port(1), NOW, rejected.clone(), hour);
        requested.accepted("a", port(2), NOW, false);
        assert_eq!(answer("a", 1), Some(rejected));
        assert_eq!(answer("a", 2), Some(Answer::Accepted));
        assert_eq!(answer("b", 1), None);
        let later = ApplyChanges::MaintenanceWindow;
        assert_eq!(requested.answer("a", &port(2), later), None);
        requested.retain("a", &[port(2)]);
        assert_eq!(answer("a", 1), None);
        assert_eq!(answer("a", 2), Some(Answer::Accepted));
        requested.retain("a", &[]);
        assert_eq!(answer("a", 2), None);
    }

    #[test]
    fn only_what_rds_has_accepted_is_remembered_when_a_user_requests_it() {
        let requested = RequestedModifications::default();
        let busy = busy(true);
        requested.remember("a", port(1), NOW, busy, Duration::from_hours(1));
        requested.accepted("a", port(2), NOW, false);
        requested.forget_refusals("a");
        assert_eq!(requested.answer("a", &port(1), NOW), None);
        let accepted = requested.answer("a", &port(2), NOW);
        assert_eq!(accepted, Some(Answer::Accepted));
    }

    #[test]
    fn answers_in_another_status_are_counted_until_there_is_another_answer() {
        let requested = RequestedModifications::default();
        for times in 0..3 {
            assert_eq!(requested.busy_answers("a", &port(1)), times);
            requested.remember("a", port(1), NOW, busy(true), Duration::ZERO);
        }
        requested.remember("a", port(1), NOW, busy(false), Duration::ZERO);
        assert_eq!(requested.busy_answers("a", &port(1)), 0, "it is expected");
        requested.remember("a", port(1), NOW, busy(true), Duration::ZERO);
        requested.retain("a", &[]);
        assert_eq!(requested.busy_answers("a", &port(1)), 0);
    }

    #[test]
    fn a_rejected_modification_is_requested_again_after_its_time() {
        let requested = RequestedModifications::default();
        let busy = busy(true);
        requested.remember("a", port(1), NOW, busy, Duration::ZERO);
        assert_eq!(requested.answer("a", &port(1), NOW), None);
    }
}
