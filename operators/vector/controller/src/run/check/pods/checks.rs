//! Checks of one workload: stored results, Pods that run, and Pods to start.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::run::check::pods::pod_state::PodState;
use crate::run::check::pods::records::{Outcome, Records};

/// Number of characters of a fingerprint in the name of a Pod.
const NAMED: usize = 10;

/// Time until a configuration is checked again after Vector has rejected it. It doubles with each attempt.
const FIRST_RECHECK: Duration = Duration::from_hours(1);

/// Maximum time until a rejected configuration is checked again.
const LONGEST_RECHECK: Duration = Duration::from_hours(24);

/// Pod of a workload that checks a configuration.
#[derive(Clone, Debug)]
pub(crate) struct ObservedPod {
    pub(crate) name: String,
    /// Fingerprint of what it checks.
    pub(crate) fingerprint: String,
    pub(crate) state: PodState,
}

/// Pod that is to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredPod {
    pub(crate) name: String,
    pub(crate) fingerprint: String,
}

/// Result of a check, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    Passed,
    /// Vector rejects the configuration, for this reason.
    Failed(String),
    /// There is no result yet, for this reason.
    Pending(String),
}

/// Checks of one workload at a point in time.
pub(crate) struct Checks<'a> {
    /// Name of the objects that run Vector.
    object_name: &'a str,
    now: Timestamp,
    records: Records,
    pods: Vec<ObservedPod>,
    needed: BTreeSet<String>,
    running: Vec<DesiredPod>,
    wanted: Vec<WantedPod>,
    next: Option<Duration>,
}

/// Pod to start, if there is a slot for it.
#[derive(Debug)]
struct WantedPod {
    pod: DesiredPod,
    priority: Priority,
}

/// Order in which Pods are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// Others wait for its result.
    First,
    /// There was no attempt yet.
    New,
    /// The last attempt came to no result, and this one was due at this time.
    Again(Timestamp),
}

/// Results to store, and Pods that are to exist.
#[derive(Debug, PartialEq)]
pub(crate) struct Finished {
    pub(crate) records: Records,
    pub(crate) pods: Vec<DesiredPod>,
    /// Time until a Pod times out, or until the next attempt.
    pub(crate) next: Option<Duration>,
}

impl<'a> Checks<'a> {
    pub(crate) fn new(
        object_name: &'a str,
        now: Timestamp,
        records: Records,
        pods: Vec<ObservedPod>,
    ) -> Self {
        Self {
            object_name,
            now,
            records,
            pods,
            needed: BTreeSet::new(),
            running: Vec::new(),
            wanted: Vec::new(),
            next: None,
        }
    }

    /// Returns the result of a check. If it is neither known nor about to be known, a Pod is wanted for it. `secrets`
    /// identifies the versions of the Secrets to which the configuration refers. A rejection counts until they change, and
    /// for a limited time: its cause may have been outside of the configuration.
    pub(crate) fn result(&mut self, fingerprint: &str, secrets: &str) -> CheckResult {
        self.needed.insert(fingerprint.to_owned());
        let mut priority = Priority::New;
        let mut rejection = None;
        let attempts = match self.records.get(fingerprint).cloned() {
            Some(Outcome::Passed) => return CheckResult::Passed,
            Some(Outcome::Failed {
                message,
                attempts,
                retry_at,
                secrets: checked,
            }) => {
                let left = retry_at.duration_since(self.now);
                let result = CheckResult::Failed(message);
                if checked == secrets {
                    if left.is_positive() {
                        self.wake_after(left.unsigned_abs());
                        return result;
                    }
                    priority = Priority::Again(retry_at);
                }
                rejection = Some(result);
                attempts
            }
            Some(Outcome::Unfinished {
                message,
                attempts,
                retry_at,
            }) => {
                let left = retry_at.duration_since(self.now);
                if left.is_positive() {
                    self.wake_after(left.unsigned_abs());
                    return unfinished(&message);
                }
                priority = Priority::Again(retry_at);
                attempts
            }
            None => 0,
        };
        let name = self.pod_name(fingerprint, attempts);
        let mut pods = self.pods.iter();
        let found = pods.find(|it| it.name == name).cloned();
        let pod = DesiredPod {
            name,
            fingerprint: fingerprint.to_owned(),
        };
        let outcome = match found {
            None => {
                let waits = self.want(pod, priority);
                return rejection.unwrap_or(waits);
            }
            Some(other) if other.fingerprint != fingerprint => {
                return rejection.unwrap_or_else(waits);
            }
            Some(found) => match found.state {
                PodState::Running(left) => {
                    let runs = self.keep(pod, left);
                    return rejection.unwrap_or(runs);
                }
                PodState::Passed => Outcome::Passed,
                PodState::Failed(log) => {
                    let log = log.as_deref().unwrap_or("its log is not available");
                    let message = format!("Vector rejects the configuration: {log}");
                    Outcome::Failed {
                        message,
                        attempts: attempts + 1,
                        retry_at: self.now + recheck_after(attempts),
                        secrets: secrets.to_owned(),
                    }
                }
                PodState::Unfinished(message) => {
                    self.records.set_unfinished(fingerprint, &message, self.now);
                    return self.result(fingerprint, secrets);
                }
            },
        };
        self.records.set(fingerprint, outcome);
        self.result(fingerprint, secrets)
    }

    /// Returns the number of Pods that run, and of those that are wanted.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.running.len(), self.wanted.len())
    }

    /// Returns the checks that no Pod has done or does, the most urgent one first. Those that are repeated after some time
    /// are not among them: what a Pod that keeps running says would be the same again.
    pub(crate) fn first_attempts(&self) -> Vec<DesiredPod> {
        let wanted = self.wanted.iter();
        let is_first = |it: &&WantedPod| !matches!(it.priority, Priority::Again(_));
        let mut first: Vec<_> = wanted.filter(is_first).collect();
        first.sort_by_key(|it| it.priority);
        first.into_iter().map(|it| it.pod.clone()).collect()
    }

    /// Starts no Pod for a check. The workload is reconciled again after a time.
    pub(crate) fn postpone(&mut self, fingerprint: &str, time: Duration) {
        self.wanted.retain(|it| it.pod.fingerprint != fingerprint);
        self.wake_after(time);
    }

    /// Ends with the number of Pods that may be started.
    pub(crate) fn finish(mut self, granted: usize) -> Finished {
        self.records.prune(&self.needed);
        // Checks that come to no result, such as those with a long time-out, do not keep others waiting.
        self.wanted.sort_by_key(|it| it.priority);
        let started = self.wanted.into_iter().take(granted);
        let mut pods = self.running;
        pods.extend(started.map(|it| it.pod));
        Finished {
            records: self.records,
            pods,
            next: self.next,
        }
    }

    fn keep(&mut self, pod: DesiredPod, left: Duration) -> CheckResult {
        self.wake_after(left);
        let message = format!("is being checked by the Pod `{}`", pod.name);
        if !self.running.contains(&pod) {
            self.running.push(pod);
        }
        CheckResult::Pending(message)
    }

    /// Starts the Pod of a check before all others, if one is wanted for it.
    pub(crate) fn prefer(&mut self, fingerprint: &str) {
        let mut wanted = self.wanted.iter_mut();
        if let Some(found) = wanted.find(|it| it.pod.fingerprint == fingerprint) {
            found.priority = Priority::First;
        }
    }

    fn want(&mut self, pod: DesiredPod, priority: Priority) -> CheckResult {
        if self.wanted.iter().all(|it| it.pod.name != pod.name) {
            self.wanted.push(WantedPod { pod, priority });
        }
        waits()
    }

    fn wake_after(&mut self, time: Duration) {
        self.next = Some(self.next.map_or(time, |next| next.min(time)));
    }

    fn pod_name(&self, fingerprint: &str, attempts: u32) -> String {
        let short = &fingerprint[..NAMED.min(fingerprint.len())];
        let name = format!("configcheck-{}-{short}", self.object_name);
        match attempts {
            0 => name,
            attempts => format!("{name}-{attempts}"),
        }
    }
}

fn waits() -> CheckResult {
    CheckResult::Pending("waits for a check in a Pod".to_owned())
}

fn unfinished(message: &str) -> CheckResult {
    CheckResult::Pending(format!(
        "could not be checked, and is checked again: {message}"
    ))
}

fn recheck_after(attempts: u32) -> Duration {
    let factor = 2_u32.saturating_pow(attempts);
    FIRST_RECHECK.saturating_mul(factor).min(LONGEST_RECHECK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINGERPRINT: &str = "0123456789abcdef";

    fn pod(name: &str, state: PodState) -> ObservedPod {
        ObservedPod {
            name: format!("configcheck-logs-agent-{name}"),
            fingerprint: FINGERPRINT.to_owned(),
            state,
        }
    }

    /// Returns the result at a time in seconds, the results to store and the desired Pods.
    fn check(seconds: i64, records: &Records, pods: &[ObservedPod]) -> (CheckResult, Finished) {
        let now = Timestamp::from_second(seconds).expect("a time");
        let mut checks = Checks::new("logs-agent", now, records.clone(), pods.to_vec());
        let result = checks.result(FINGERPRINT, "");
        let again = checks.result(FINGERPRINT, "");
        assert_eq!(again, result, "it can be asked twice");
        (result, checks.finish(1))
    }

    fn names(finished: &Finished) -> Vec<&str> {
        let pods = finished.pods.iter();
        pods.map(|it| {
            it.name
                .strip_prefix("configcheck-logs-agent-")
                .expect("a prefix")
        })
        .collect()
    }

    #[test]
    fn a_configuration_is_checked_once_and_the_result_is_stored() {
        let none = Records::default();
        let (result, started) = check(0, &none, &[]);
        assert_eq!(result, waits());
        assert_eq!(names(&started), ["0123456789"]);
        let left = Duration::from_secs(9);
        let running = [pod("0123456789", PodState::Running(left))];
        let (result, runs) = check(0, &none, &running);
        let message = "is being checked by the Pod `configcheck-logs-agent-0123456789`";
        assert_eq!(result, CheckResult::Pending(message.to_owned()));
        assert_eq!((names(&runs), runs.next), (vec!["0123456789"], Some(left)));
        let log = Some("x".to_owned());
        for (state, expected) in [
            (PodState::Passed, CheckResult::Passed),
            (
                PodState::Failed(log),
                CheckResult::Failed("Vector rejects the configuration: x".to_owned()),
            ),
        ] {
            let (result, ended) = check(0, &none, &[pod("0123456789", state)]);
            assert_eq!(result, expected);
            assert_eq!(ended.pods, [], "its Pod is deleted");
            // Neither after a restart nor later is there another Pod.
            let (result, again) = check(3_599, &ended.records, &[]);
            assert_eq!(result, expected);
            assert_eq!((again.records, again.pods), (ended.records, ended.pods));
        }
    }

    #[test]
    fn a_rejected_configuration_is_checked_again_later_and_later() {
        let rejects = |name: &str| pod(name, PodState::Failed(Some("x".to_owned())));
        let expected = CheckResult::Failed("Vector rejects the configuration: x".to_owned());
        let mut records = Records::default();
        let mut now = 0;
        for (name, hours) in [("0123456789", 1), ("0123456789-1", 2), ("0123456789-2", 4)] {
            let (result, ended) = check(now, &records, &[rejects(name)]);
            assert_eq!((&result, names(&ended)), (&expected, vec![]));
            assert_eq!(ended.next, Some(Duration::from_hours(hours)));
            records = ended.records;
            now += i64::try_from(hours * 3_600).expect("it is small");
            let (result, next) = check(now, &records, &[rejects(name)]);
            assert_eq!(result, expected, "it is rejected until the check has ended");
            assert_eq!(names(&next).len(), 1);
        }
        let (result, ended) = check(now, &records, &[pod("0123456789-3", PodState::Passed)]);
        assert_eq!((result, ended.next), (CheckResult::Passed, None));
        assert_eq!(recheck_after(40), LONGEST_RECHECK);
    }

    #[test]
    fn a_rejected_configuration_is_checked_again_when_a_secret_changes() {
        let failed = pod("0123456789", PodState::Failed(None));
        let (_, ended) = check(0, &Records::default(), &[failed]);
        for (secrets, expected) in [("", 0), ("other", 1)] {
            let now = Timestamp::UNIX_EPOCH;
            let mut checks = Checks::new("logs-agent", now, ended.records.clone(), Vec::new());
            let result = checks.result(FINGERPRINT, secrets);
            assert!(matches!(result, CheckResult::Failed(_)), "{result:?}");
            assert_eq!(checks.counts(), (0, expected), "{secrets}");
        }
    }

    #[test]
    fn a_check_without_a_result_is_repeated_later_and_later() {
        let mut records = Records::default();
        let mut now = 0;
        for (attempt, (name, seconds)) in [
            ("0123456789", 60),
            ("0123456789-1", 120),
            ("0123456789-2", 240),
        ]
        .into_iter()
        .enumerate()
        {
            let unfinished = pod(name, PodState::Unfinished(format!("reason {attempt}")));
            let (result, ended) = check(now, &records, std::slice::from_ref(&unfinished));
            let message = format!("could not be checked, and is checked again: reason {attempt}");
            assert_eq!(result, CheckResult::Pending(message));
            assert_eq!(
                (names(&ended), ended.next),
                (vec![], Some(Duration::from_secs(seconds)))
            );
            records = ended.records;
            now += i64::try_from(seconds).expect("it is small");
            // The Pod of the last attempt may still be there.
            let (result, next) = check(now, &records, &[unfinished]);
            assert_eq!(result, waits());
            assert_eq!(names(&next), [format!("0123456789-{}", attempt + 1)]);
        }
    }

    #[test]
    fn a_pod_that_checks_something_else_gives_no_result() {
        let mut other = pod("0123456789", PodState::Passed);
        other.fingerprint = "0123456789another".to_owned();
        let (result, finished) = check(0, &Records::default(), &[other]);
        assert_eq!((result, finished.pods), (waits(), vec![]));
    }

    #[test]
    fn without_a_free_slot_no_pod_is_started() {
        let now = Timestamp::UNIX_EPOCH;
        let mut checks = Checks::new("a", now, Records::default(), Vec::new());
        for fingerprint in ["1", "2", "3"] {
            assert_eq!(checks.result(fingerprint, ""), waits());
        }
        assert_eq!(checks.counts(), (0, 3));
        assert_eq!(checks.finish(2).pods.len(), 2);
    }

    #[test]
    fn preferred_checks_come_first_and_those_that_came_to_no_result_last() {
        let mut records = Records::default();
        for (fingerprint, retry_at) in [("late", -1), ("early", -2)] {
            let outcome = Outcome::Unfinished {
                message: String::new(),
                attempts: 1,
                retry_at: Timestamp::from_second(retry_at).expect("a time"),
            };
            records.set(fingerprint, outcome);
        }
        let mut checks = Checks::new("a", Timestamp::UNIX_EPOCH, records, Vec::new());
        for fingerprint in ["late", "early", "new", "together"] {
            assert_eq!(checks.result(fingerprint, ""), waits());
        }
        checks.prefer("together");
        checks.prefer("unknown");
        let pods = checks.finish(4).pods.into_iter();
        let order: Vec<_> = pods.map(|it| it.fingerprint).collect();
        assert_eq!(order, ["together", "new", "early", "late"]);
    }

    #[test]
    fn only_first_attempts_and_those_with_other_secrets_are_asked_of_a_pod_that_keeps_running() {
        let mut records = Records::default();
        records.set_unfinished("again", "x", Timestamp::UNIX_EPOCH);
        for (fingerprint, retry_at) in [("rejected", 1), ("changed", 9_999)] {
            let outcome = Outcome::Failed {
                message: String::new(),
                attempts: 1,
                retry_at: Timestamp::from_second(retry_at).expect("a time"),
                secrets: "old".to_owned(),
            };
            records.set(fingerprint, outcome);
        }
        let now = Timestamp::from_second(999).expect("a time");
        let mut checks = Checks::new("a", now, records, Vec::new());
        for (fingerprint, secrets) in [
            ("again", ""),
            ("rejected", "old"),
            ("changed", "new"),
            ("new", ""),
            ("together", ""),
        ] {
            checks.result(fingerprint, secrets);
        }
        checks.prefer("together");
        let first = checks.first_attempts().into_iter();
        let order: Vec<_> = first.map(|it| it.fingerprint).collect();
        assert_eq!(order, ["together", "changed", "new"]);
        checks.postpone("new", Duration::from_secs(1));
        assert_eq!(checks.counts(), (0, 4));
        let finished = checks.finish(9);
        assert!(finished.pods.iter().all(|it| it.fingerprint != "new"));
        assert_eq!(finished.next, Some(Duration::from_secs(1)));
    }
}
