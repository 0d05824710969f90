//! Knowledge of this process about recorded changes that RDS has not accepted: they were not made, or their answer was lost
//! and nothing has happened since then. The status of an object does not contain it, so that after a restart such a change may
//! have been made.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use lockstep_cloud_database_api::AcceptedChange;

/// Longest time between two descriptions in which no change begins and ends: RDS shows that it changes an instance for
/// minutes.
const LONGEST_GAP: SignedDuration = SignedDuration::from_mins(2);

/// Knowledge about a recorded change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// It was not made: it was not sent, or RDS has said that it did not carry it out.
    NotMade,
    /// Its answer was lost. Each description in this time shows an idle instance without it.
    Unanswered { since: Timestamp, until: Timestamp },
}

/// Recorded change that RDS has not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnacceptedChange {
    pub(crate) record: AcceptedChange,
    pub(crate) knowledge: Knowledge,
}

impl UnacceptedChange {
    pub(crate) fn not_made(record: AcceptedChange) -> Self {
        Self {
            record,
            knowledge: Knowledge::NotMade,
        }
    }

    /// Creates one whose answer was lost just now.
    pub(crate) fn unanswered(record: AcceptedChange, now: Timestamp) -> Self {
        Self {
            record,
            knowledge: Knowledge::Unanswered {
                since: now,
                until: now,
            },
        }
    }

    /// Returns true if a record of a status is the one of this change.
    pub(crate) fn is(&self, record: &AcceptedChange) -> bool {
        let own = &self.record;
        own.field == record.field
            && own.target == record.target
            && own.consent == record.consent
            && own.requested_at == record.requested_at
    }
}

impl Knowledge {
    /// Returns what is known after a description that shows an idle instance without the change, unless it is the first
    /// after a time in which the change can have been made and taken back. After `shown_after`, RDS would have shown it.
    pub(crate) fn after_idle(self, now: Timestamp, shown_after: SignedDuration) -> Option<Self> {
        let Self::Unanswered { since, until } = self else {
            return Some(self);
        };
        if now.duration_since(until) > LONGEST_GAP {
            None
        } else if now.duration_since(since) >= shown_after {
            Some(Self::NotMade)
        } else {
            Some(Self::Unanswered { since, until: now })
        }
    }
}

/// Such changes by the identifiers of their instances.
#[derive(Default)]
pub(crate) struct UnacceptedChanges(Mutex<HashMap<String, Vec<UnacceptedChange>>>);

impl UnacceptedChanges {
    /// Returns those of an instance, and forgets them: while they are requested, nothing is known about them.
    pub(crate) fn take(&self, id: &str) -> Vec<UnacceptedChange> {
        self.lock().remove(id).unwrap_or_default()
    }

    pub(crate) fn set(&self, id: &str, changes: Vec<UnacceptedChange>) {
        if !changes.is_empty() {
            self.lock().insert(id.to_owned(), changes);
        }
    }

    #[cfg(test)]
    pub(crate) fn copy(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    /// Returns a text that is equal for equal knowledge.
    #[cfg(test)]
    pub(crate) fn digest(&self) -> String {
        let changes = self.lock();
        let all = changes.values().flatten();
        let mut texts: Vec<_> = all
            .map(|it| {
                let is_open = matches!(it.knowledge, Knowledge::Unanswered { .. });
                format!("{}{}{is_open}", it.record.field, it.record.target)
            })
            .collect();
        texts.sort();
        texts.concat()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<UnacceptedChange>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).expect("a time")
    }

    #[test]
    fn only_descriptions_without_a_gap_prove_that_a_change_without_an_answer_was_not_made() {
        let shown_after = SignedDuration::from_mins(10);
        let lost = Knowledge::Unanswered {
            since: at(0),
            until: at(0),
        };
        let mut knowledge = lost;
        for minute in 1..10 {
            let next = knowledge.after_idle(at(minute), shown_after);
            knowledge = next.expect("no gap");
            assert_ne!(knowledge, Knowledge::NotMade, "{minute}");
        }
        let proven = knowledge.after_idle(at(10), shown_after);
        assert_eq!(proven, Some(Knowledge::NotMade));
        assert_eq!(knowledge.after_idle(at(12), shown_after), None);
        assert_eq!(lost.after_idle(at(10), shown_after), None);
        let not_made = Knowledge::NotMade;
        assert_eq!(not_made.after_idle(at(99), shown_after), Some(not_made));
    }
}
