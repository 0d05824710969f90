//! Checks by validators: another producer of the results of Pods.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use lockstep_vector_validator::Configuration;

use crate::run::check::warm_validator::{Reply, Session, WarmValidator};

/// Time for which a validator is not asked that does not answer: each attempt takes up to seconds, and Pods do the checks.
const REST: Duration = Duration::from_mins(1);

/// Time until the next reconciliation, which asks the remaining questions.
pub(crate) const SOON: Duration = Duration::from_millis(100);

/// Experience with the validators of all workloads of a kind. Nothing of it needs to outlive the process.
#[derive(Default)]
pub(crate) struct WarmChecks(Mutex<HashMap<String, Experience>>);

/// Experience with one validator.
#[derive(Default)]
struct Experience {
    /// Fingerprints of configurations for which it came to no result.
    unfinished: BTreeSet<String>,
    /// End of the time in which it is not asked.
    rests_until: Option<Instant>,
}

/// Validator that is asked within one reconciliation of a workload.
pub(crate) struct Asking<'a> {
    checks: &'a WarmChecks,
    uid: &'a str,
    session: Option<Session>,
}

impl WarmChecks {
    /// Begins to ask the validator of a workload, unless it cannot be asked.
    pub(crate) async fn begin<'a>(
        &'a self,
        client: &Client,
        namespace: &str,
        uid: &'a str,
        validator: &WarmValidator,
    ) -> Asking<'a> {
        let mut asking = Asking {
            checks: self,
            uid,
            session: None,
        };
        let rests_until = self.known().get(uid).and_then(|it| it.rests_until);
        if rests_until.is_some_and(|until| Instant::now() < until) {
            return asking;
        }
        match Session::open(client, namespace, validator).await {
            Ok(session) => asking.session = session,
            Err(why) => asking.rest(&why),
        }
        asking
    }

    /// Forgets a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.known().remove(uid);
    }

    /// Returns true if the validator came to no result for a configuration.
    pub(crate) fn is_unfinished(&self, uid: &str, fingerprint: &str) -> bool {
        let known = self.known();
        known
            .get(uid)
            .is_some_and(|it| it.unfinished.contains(fingerprint))
    }

    /// Remembers that the validator comes to no result for a configuration.
    pub(crate) fn set_unfinished(&self, uid: &str, fingerprint: &str) {
        let mut known = self.known();
        let it = known.entry(uid.to_owned()).or_default();
        it.unfinished.insert(fingerprint.to_owned());
    }

    /// Forgets what no check needs any more.
    pub(crate) fn retain(&self, uid: &str, is_needed: impl Fn(&str) -> bool) {
        if let Some(it) = self.known().get_mut(uid) {
            it.unfinished.retain(|fingerprint| is_needed(fingerprint));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Experience>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking<'_> {
    /// Returns true if the validator answers.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_some()
    }

    /// Returns true if no further question is to be asked in this reconciliation.
    pub(crate) fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(Session::is_over)
    }

    /// Returns what Vector says about a configuration. None if it is not known: a Pod of its own is to check it.
    pub(crate) async fn ask(
        &mut self,
        fingerprint: &str,
        configuration: &Configuration,
    ) -> Option<Reply> {
        match self.session.as_mut()?.ask(configuration).await {
            Ok(Reply::Unfinished(why)) => {
                tracing::warn!(
                    why,
                    "the validator came to no result; a Pod checks the configuration"
                );
                self.checks.set_unfinished(self.uid, fingerprint);
                None
            }
            Ok(reply) => Some(reply),
            Err(why) => {
                self.rest(&why);
                None
            }
        }
    }

    fn rest(&mut self, why: &str) {
        tracing::warn!(
            why,
            "the validator cannot be asked; Pods check the configurations"
        );
        self.session = None;
        let mut known = self.checks.known();
        let it = known.entry(self.uid.to_owned()).or_default();
        it.rests_until = Some(Instant::now() + REST);
    }
}
