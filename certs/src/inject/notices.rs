//! Notices about configurations and the Secret, which become Events.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::inject::target::InjectTarget;
use crate::metrics::Metrics;
use crate::store::secret;

/// Object that a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum About {
    Secret,
    Target(InjectTarget),
}

/// Notice that becomes an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) about: About,
    pub(crate) reason: &'static str,
    pub(crate) note: String,
}

impl Notice {
    /// Returns true if a CA bundle was repaired.
    pub(crate) fn is_repair(&self) -> bool {
        self.reason == CA_BUNDLE_REPAIRED
    }
}

const CA_BUNDLE_REPAIRED: &str = "CABundleRepaired";

/// Collector of the notices, and of the CA bundles that this process has seen in the configurations.
pub(crate) struct Notices {
    metrics: Metrics,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: Vec<Notice>,
    /// Last CA bundle with which each configuration was current.
    current: HashMap<InjectTarget, String>,
    /// Servers of other installations in each configuration.
    foreign: HashMap<InjectTarget, BTreeSet<String>>,
}

impl Notices {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            state: Mutex::default(),
        }
    }

    /// Removes and returns the notices.
    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut self.state().pending)
    }

    /// Records that the Secret was repaired.
    pub(crate) fn secret_repaired(&self, damage: &str) {
        tracing::warn!(
            damage,
            "the Secret with the certificates was damaged; repaired it"
        );
        self.state().pending.push(Notice {
            about: About::Secret,
            reason: "CertificatesRepaired",
            note: format!("the Secret was damaged and has been repaired: {damage}"),
        });
    }

    /// Records the servers of other installations that a configuration refers to; empty if there are none. A change of
    /// them is reported once.
    pub(crate) fn set_foreign_servers(&self, target: &InjectTarget, servers: BTreeSet<String>) {
        self.metrics.set_foreign(target, !servers.is_empty());
        let mut state = self.state();
        let before = state.foreign.insert(target.clone(), servers.clone());
        if servers.is_empty() || before.as_ref() == Some(&servers) {
            return;
        }
        // This installation no longer maintains the CA bundle.
        state.current.remove(target);
        let servers: Vec<_> = servers.into_iter().collect();
        let own = &target.service;
        let note = format!(
            "the configuration refers to {}, and not to the Service {}/{}: it belongs to another installation, and the \
             one in the namespace {} does not modify it",
            servers.join(" and "),
            own.namespace,
            own.name,
            own.namespace
        );
        tracing::warn!(target = target.name, kind = ?target.kind, "{note}");
        state.pending.push(Notice {
            about: About::Target(target.clone()),
            reason: "OwnedByAnotherInstallation",
            note,
        });
    }

    /// Records that a configuration contains the CA bundle `trusted`.
    pub(crate) fn set_current(&self, target: &InjectTarget, trusted: &str) {
        let mut state = self.state();
        state.current.insert(target.clone(), trusted.to_owned());
    }

    /// Records that the CA bundle `trusted` was injected into a configuration that had contained `found`.
    pub(crate) fn injected(&self, target: &InjectTarget, found: &[Option<String>], trusted: &str) {
        let mut state = self.state();
        let before = state.current.insert(target.clone(), trusted.to_owned());
        let is_repair = before.is_some_and(|before| is_overwritten(found, &before, trusted));
        if !is_repair {
            return;
        }
        self.metrics.count_repair(target);
        state.pending.push(Notice {
            about: About::Target(target.clone()),
            reason: CA_BUNDLE_REPAIRED,
            note: "another client had changed or removed the CA bundle, so that the API server could not call the \
                   webhook; it has been restored"
                .to_owned(),
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if another client than a replica of this installation has written one of the CA bundles `found`.
///
/// A replica writes all CAs that were current `before` and stay trusted, and none that is neither current nor trusted.
fn is_overwritten(found: &[Option<String>], before: &str, trusted: &str) -> bool {
    let certificates = |text: &str| -> BTreeSet<String> {
        secret::readable_certificates(text).into_iter().collect()
    };
    let (before, now) = (certificates(before), certificates(trusted));
    let is_foreign = |bundle: &Option<String>| {
        let bundle = bundle.as_deref().map(certificates).unwrap_or_default();
        let has_all = before.intersection(&now).all(|ca| bundle.contains(ca));
        let has_more = bundle
            .iter()
            .any(|ca| !before.contains(ca) && !now.contains(ca));
        bundle.is_empty() || !has_all || has_more
    };
    let mut outdated = found.iter().filter(|it| it.as_deref() != Some(trusted));
    outdated.any(is_foreign)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::registry::Registry;
    use time::OffsetDateTime;

    use super::*;
    use crate::ca::authority::CertificateAuthority;
    use crate::inject::target::InjectTargetKind;

    fn ca() -> String {
        let ca = CertificateAuthority::generate(Duration::from_hours(1), OffsetDateTime::now_utc());
        ca.expect("a CA").certificate
    }

    fn target() -> InjectTarget {
        InjectTarget::sample(InjectTargetKind::Validating)
    }

    #[test]
    fn only_a_change_by_another_client_is_a_repair() {
        let (old, new, foreign) = (ca(), ca(), ca());
        let both = format!("{new}{old}");
        for (name, found, before, trusted, expected) in [
            ("a new CA is introduced", old.as_str(), &old, &both, false),
            (
                "another replica has introduced it",
                &both,
                &old,
                &both,
                false,
            ),
            (
                "another replica has ended a rotation",
                &both,
                &old,
                &new,
                false,
            ),
            ("the old CA is removed", &both, &both, &new, false),
            ("removed by another client", "", &old, &old, true),
            ("an old manifest was applied", &old, &both, &both, true),
            ("replaced", &foreign, &old, &old, true),
            ("added", &format!("{old}{foreign}"), &old, &old, true),
            ("not a certificate", "-----BEGIN", &old, &old, true),
        ] {
            let found = [Some(found.to_owned())];
            assert_eq!(is_overwritten(&found, before, trusted), expected, "{name}");
        }
        assert!(is_overwritten(&[None], &old, &old), "no CA bundle");
    }

    #[test]
    fn the_first_injection_is_not_a_repair() {
        let notices = Notices::new(Metrics::register(&mut Registry::default()));
        let (target, trusted) = (target(), ca());
        notices.injected(&target, &[None], &trusted);
        assert_eq!(notices.take(), []);
        notices.injected(&target, &[None], &trusted);
        assert!(notices.take().iter().all(Notice::is_repair));
        notices.set_current(&target, &trusted);
        assert_eq!(notices.take(), []);
    }

    #[test]
    fn the_server_of_another_installation_is_named_once() {
        let notices = Notices::new(Metrics::register(&mut Registry::default()));
        let target = target();
        let servers = || BTreeSet::from(["the Service other/webhook".to_owned()]);
        notices.set_current(&target, &ca());
        notices.set_foreign_servers(&target, servers());
        let [notice] = &notices.take()[..] else {
            panic!("one notice")
        };
        assert_eq!(notice.reason, "OwnedByAnotherInstallation");
        assert!(notice.note.contains(
            "refers to the Service other/webhook, and not to the Service system/webhook"
        ));
        notices.set_foreign_servers(&target, servers());
        assert_eq!(notices.take(), []);
        // Back again: what the other one has injected is replaced, which repairs nothing.
        notices.set_foreign_servers(&target, BTreeSet::new());
        notices.injected(&target, &[Some(ca())], &ca());
        assert_eq!(notices.take(), []);
    }
}
