//! Attempts to learn catalogues: those that run, that have failed, and that are done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lockstep_vector_api::VectorVersion;

/// Time after the first failed attempt until the next one. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_mins(1);

/// Longest time between two attempts.
const LONGEST_BACKOFF: Duration = Duration::from_hours(6);

/// Time within which the kubelet updates the files of a changed `ConfigMap`. After it, the `ConfigMap` is read again: a user
/// may have deleted it.
const UPDATED_WITHIN: Duration = Duration::from_mins(5);

/// Time within which an image can be asked: it is pulled, and its Pod is ready.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Attempts of this process.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    running: BTreeSet<VectorVersion>,
    /// Versions that the `ConfigMap` contained at a time.
    written: BTreeMap<VectorVersion, Instant>,
    /// Beginnings of attempts whose image cannot be asked yet.
    waiting: BTreeMap<(VectorVersion, String), Instant>,
    /// Failures by version and image: another image of the version may do.
    failed: BTreeMap<(VectorVersion, String), Failure>,
}

#[derive(Debug)]
struct Failure {
    message: String,
    count: u32,
    until: Instant,
}

/// State of a version that has no catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The `ConfigMap` is to be read, and then the image is to be asked.
    Due,
    /// An image is being asked.
    Running,
    /// The catalogue is written. The kubelet updates the files.
    Written,
    /// The last attempt has failed, and the next one begins after this time.
    Failed(String, Duration),
}

impl Attempts {
    /// Returns the state of a version in an image.
    pub(crate) fn state(&self, version: VectorVersion, image: &str, now: Instant) -> Attempt {
        if self.running.contains(&version) {
            return Attempt::Running;
        }
        let written = self.written.get(&version);
        if written.is_some_and(|at| now.duration_since(*at) < UPDATED_WITHIN) {
            return Attempt::Written;
        }
        match self.failed.get(&(version, image.to_owned())) {
            Some(failure) if failure.until > now => {
                let next = failure.until.duration_since(now);
                Attempt::Failed(failure.message.clone(), next)
            }
            _ => Attempt::Due,
        }
    }

    /// Records that an image cannot be asked yet. Returns false if it could not for five minutes.
    pub(crate) fn wait(&mut self, version: VectorVersion, image: &str, now: Instant) -> bool {
        let key = (version, image.to_owned());
        let since = *self.waiting.entry(key).or_insert(now);
        now.duration_since(since) < LONGEST_WAIT
    }

    /// Begins an attempt. Returns false if one of the version runs.
    pub(crate) fn begin(&mut self, version: VectorVersion) -> bool {
        self.running.insert(version)
    }

    /// Ends an attempt.
    pub(crate) fn end(
        &mut self,
        version: VectorVersion,
        image: &str,
        result: Result<(), String>,
        now: Instant,
    ) {
        self.running.remove(&version);
        self.waiting.remove(&(version, image.to_owned()));
        match result {
            Ok(()) => {
                self.written.insert(version, now);
                self.failed.retain(|(it, _), _| *it != version);
            }
            Err(message) => {
                let key = (version, image.to_owned());
                let count = self.failed.get(&key).map_or(0, |failure| failure.count);
                let backoff = FIRST_BACKOFF.saturating_mul(1 << count.min(16));
                let failure = Failure {
                    message,
                    count: count + 1,
                    until: now + backoff.min(LONGEST_BACKOFF),
                };
                self.failed.insert(key, failure);
            }
        }
    }

    /// Forgets that a version is written: it was removed.
    pub(crate) fn removed(&mut self, versions: &[VectorVersion]) {
        self.written
            .retain(|version, _| !versions.contains(version));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::learned_catalogue::tests::version;

    #[test]
    fn an_image_that_cannot_be_asked_for_five_minutes_is_a_failure() {
        let (start, of) = (Instant::now(), version("0.48"));
        let mut attempts = Attempts::default();
        let almost = start + LONGEST_WAIT / 2;
        assert!(attempts.wait(of, "a", start) && attempts.wait(of, "a", almost));
        assert!(!attempts.wait(of, "a", start + LONGEST_WAIT));
        assert!(attempts.wait(of, "b", start + LONGEST_WAIT));
        attempts.end(of, "a", Err("no Pod".to_owned()), start);
        assert!(
            attempts.wait(of, "a", start + LONGEST_WAIT),
            "the next attempt"
        );
    }

    #[test]
    fn a_failure_is_repeated_after_a_time_that_doubles_and_is_that_of_one_image() {
        let (start, of) = (Instant::now(), version("0.48"));
        let mut attempts = Attempts::default();
        assert_eq!(attempts.state(of, "a", start), Attempt::Due);
        let mut expected = FIRST_BACKOFF;
        for _ in 0..12 {
            assert!(attempts.begin(of));
            assert!(!attempts.begin(of), "it runs");
            assert_eq!(attempts.state(of, "b", start), Attempt::Running);
            attempts.end(of, "a", Err("not pulled".to_owned()), start);
            let failed = Attempt::Failed("not pulled".to_owned(), expected);
            assert_eq!(attempts.state(of, "a", start), failed);
            assert_eq!(attempts.state(of, "b", start), Attempt::Due);
            assert_eq!(attempts.state(of, "a", start + expected), Attempt::Due);
            expected = (expected * 2).min(LONGEST_BACKOFF);
        }
        assert_eq!(expected, LONGEST_BACKOFF);
        assert!(attempts.begin(of));
        attempts.end(of, "b", Ok(()), start);
        assert_eq!(attempts.state(of, "a", start), Attempt::Written);
        let later = start + UPDATED_WITHIN;
        assert_eq!(attempts.state(of, "a", later), Attempt::Due);
        attempts.removed(&[of]);
        assert_eq!(attempts.state(of, "a", start), Attempt::Due);
    }
}
