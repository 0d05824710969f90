//! Stored results of checks.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use lockstep_shared_validation::shortened;
use serde::{Deserialize, Serialize};

/// Key in the Secret with the parts that run now.
pub(crate) const KEY: &str = "checks.json";

/// Maximum number of results that no pipeline needs now. An earlier version of a pipeline may come back.
const MAX_UNUSED: usize = 64;

/// Time until the second attempt, if a Pod came to no result. It doubles with each attempt.
const FIRST_RETRY: Duration = Duration::from_mins(1);

/// Maximum time until the next attempt.
const LONGEST_RETRY: Duration = Duration::from_hours(1);

/// Maximum size of a message, in bytes.
const LONGEST_MESSAGE: usize = 1_000;

/// Maximum size of a message in results that are old and many, in bytes.
const SHORT_MESSAGE: usize = 50;

/// Size of all results from which the messages of the older ones are cut off, in bytes.
const MAX_BYTES_IN_FULL: usize = 128 << 10;

/// Maximum size of all results, in bytes. They share a Secret with the parts that run.
const MAX_BYTES: usize = 384 << 10;

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "result",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Outcome {
    /// Vector accepts the configuration.
    Passed,
    /// Vector rejects the configuration.
    Failed {
        message: String,
        /// Number of Pods that were started.
        attempts: u32,
        /// Time of the next attempt.
        retry_at: Timestamp,
        /// Versions of the Secrets to which the configuration refers.
        secrets: String,
    },
    /// The Pod did not come to a result.
    Unfinished {
        message: String,
        /// Number of Pods that came to no result.
        attempts: u32,
        /// Time of the next attempt.
        retry_at: Timestamp,
    },
}

/// Result with the fingerprint of what was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    fingerprint: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Results, the oldest one first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Records(Vec<Record>);

impl Records {
    /// Reads the results. A content that cannot be read has none: everything is then checked again.
    pub(crate) fn read(content: Option<&[u8]>) -> Self {
        let records = content.and_then(|content| {
            serde_json::from_slice(content)
                .inspect_err(|error| tracing::warn!(%error, "the results of checks cannot be read"))
                .ok()
        });
        records.unwrap_or_default()
    }

    /// Returns the content, or none if there are no results.
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        let content = serde_json::to_vec(self).expect("results are JSON");
        (!self.0.is_empty()).then_some(content)
    }

    pub(crate) fn get(&self, fingerprint: &str) -> Option<&Outcome> {
        let mut records = self.0.iter();
        let record = records.find(|it| it.fingerprint == fingerprint)?;
        Some(&record.outcome)
    }

    /// Adds a result. It replaces the one that the same check had before.
    pub(crate) fn set(&mut self, fingerprint: &str, mut outcome: Outcome) {
        outcome.cut_message(LONGEST_MESSAGE);
        self.0.retain(|it| it.fingerprint != fingerprint);
        self.0.push(Record {
            fingerprint: fingerprint.to_owned(),
            outcome,
        });
    }

    /// Records that a check came to no result.
    pub(crate) fn set_unfinished(&mut self, fingerprint: &str, message: &str, now: Timestamp) {
        let attempts = match self.get(fingerprint) {
            Some(Outcome::Unfinished { attempts, .. } | Outcome::Failed { attempts, .. }) => {
                *attempts
            }
            _ => 0,
        };
        let outcome = Outcome::Unfinished {
            message: message.to_owned(),
            attempts: attempts + 1,
            retry_at: now + retry_after(attempts),
        };
        self.set(fingerprint, outcome);
    }

    /// Removes the oldest results that are not needed, until they are few enough. If the others are still too large for a
    /// Secret, the oldest of them lose their messages, and then are removed.
    pub(crate) fn prune(&mut self, needed: &BTreeSet<String>) {
        let is_needed = |it: &Record| needed.contains(&it.fingerprint);
        let unused = self.0.iter().filter(|it| !is_needed(it)).count();
        let mut excess = unused.saturating_sub(MAX_UNUSED);
        self.0.retain(|it| {
            let is_kept = is_needed(it) || excess == 0;
            excess -= usize::from(!is_kept);
            is_kept
        });
        let mut bytes = 0;
        let mut fitting = Vec::new();
        for mut record in std::mem::take(&mut self.0).into_iter().rev() {
            if bytes + record.bytes() > MAX_BYTES_IN_FULL {
                record.outcome.cut_message(SHORT_MESSAGE);
            }
            bytes += record.bytes();
            if bytes > MAX_BYTES {
                break;
            }
            fitting.push(record);
        }
        fitting.reverse();
        self.0 = fitting;
    }
}

impl Record {
    /// Returns the size of the record in the content, with its comma.
    fn bytes(&self) -> usize {
        let content = serde_json::to_vec(self).expect("a result is JSON");
        content.len() + 1
    }
}

impl Outcome {
    /// Shortens the message to a number of bytes.
    fn cut_message(&mut self, longest: usize) {
        let (Self::Failed { message, .. } | Self::Unfinished { message, .. }) = self else {
            return;
        };
        *message = shortened(message, longest).into_owned();
    }
}

fn retry_after(attempts: u32) -> Duration {
    let factor = 2_u32.saturating_pow(attempts);
    FIRST_RETRY.saturating_mul(factor).min(LONGEST_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_again_and_unreadable_ones_are_none() {
        let mut records = Records::default();
        assert_eq!(records.write(), None);
        records.set("a", Outcome::Passed);
        let failed = Outcome::Failed {
            message: "x".to_owned(),
            attempts: 1,
            retry_at: Timestamp::UNIX_EPOCH,
            secrets: "y".to_owned(),
        };
        records.set("b", failed);
        let unfinished = Outcome::Unfinished {
            message: "y".to_owned(),
            attempts: 2,
            retry_at: Timestamp::UNIX_EPOCH,
        };
        records.set("a", unfinished.clone());
        let content = records.write();
        let read = Records::read(content.as_deref());
        assert_eq!(read, records);
        assert_eq!(read.get("a"), Some(&unfinished));
        assert_eq!(read.get("c"), None);
        assert_eq!(Records::read(Some(b"{")), Records::default());
        assert_eq!(Records::read(None), Records::default());
    }

    #[test]
    fn the_next_attempt_is_later_and_later() {
        let mut records = Records::default();
        for (attempt, seconds) in [(1, 60), (2, 120), (3, 240)] {
            records.set_unfinished("a", "x", Timestamp::UNIX_EPOCH);
            let expected = Outcome::Unfinished {
                message: "x".to_owned(),
                attempts: attempt,
                retry_at: Timestamp::from_second(seconds).expect("a time"),
            };
            assert_eq!(records.get("a"), Some(&expected));
        }
        assert_eq!(retry_after(40), LONGEST_RETRY);
    }

    #[test]
    fn many_results_with_long_messages_fit_into_a_secret() {
        let mut records = Records::default();
        let name = |number: usize| format!("{number:064}");
        for number in 0..1_100 {
            let message = "ä".repeat(LONGEST_MESSAGE);
            records.set_unfinished(&name(number), &message, Timestamp::UNIX_EPOCH);
        }
        let needed: BTreeSet<_> = (0..1_100).map(name).collect();
        records.prune(&needed);
        let content = records.write().expect("results");
        assert!(content.len() <= MAX_BYTES, "{}", content.len());
        let message = |number| match records.get(&name(number)) {
            Some(Outcome::Unfinished { message, .. }) => message.len(),
            other => panic!("{other:?}"),
        };
        // All are kept, and the newest have their messages.
        assert_eq!((message(0), message(1_099)), (49, 999));
        let before = records.clone();
        records.prune(&needed);
        assert_eq!(records, before, "nothing is written again");
        for number in 1_100..3_000 {
            records.set(&name(number), Outcome::Passed);
        }
        records.prune(&(0..3_000).map(name).collect());
        assert!(records.write().expect("results").len() <= MAX_BYTES + 2);
        assert_eq!(records.get(&name(0)), None);
        assert_eq!(records.get(&name(2_999)), Some(&Outcome::Passed));
    }

    #[test]
    fn results_that_are_needed_stay_and_the_oldest_others_are_removed() {
        let mut records = Records::default();
        for number in 0..MAX_UNUSED + 3 {
            records.set(&number.to_string(), Outcome::Passed);
        }
        records.prune(&BTreeSet::from(["0".to_owned()]));
        let known = |number: usize| records.get(&number.to_string()).is_some();
        assert_eq!([0, 1, 2, 3].map(known), [true, false, false, true]);
        let before = records.clone();
        records.prune(&BTreeSet::from(["0".to_owned()]));
        assert_eq!(records, before, "nothing is written again");
    }
}
