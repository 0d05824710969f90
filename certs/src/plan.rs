//! CA rotation: computes the next step.

use std::time::Duration;

use time::OffsetDateTime;

use crate::authority::{AuthorityError, Ca, Period};
use crate::keys::{Incoming, Keys};

/// Rotation policy: DNS names, lifetimes and propagation delay.
#[derive(Clone, Debug)]
pub struct Plan {
    /// DNS names that a serving certificate is valid for.
    pub dns_names: Vec<String>,
    /// Validity of a CA certificate.
    pub ca_lifetime: Duration,
    /// Validity of a serving certificate.
    pub leaf_lifetime: Duration,
    /// Propagation delay: how long every configuration must contain a CA before a certificate that it signed is
    /// served. The process cannot observe which changes each API server has received.
    pub settle: Duration,
}

impl Plan {
    /// Generates a new CA and serving certificate.
    pub(crate) fn fresh(&self, now: OffsetDateTime) -> Result<Keys, AuthorityError> {
        let signing = Ca::generate(self.ca_lifetime, now)?;
        Ok(Keys {
            serving: signing.sign(&self.dns_names, self.leaf_lifetime, now)?,
            signing,
            incoming: None,
            outgoing: Vec::new(),
            rotation_asked: false,
        })
    }

    /// Returns the keys after the next step and a description of the step, if one is due. Every configuration must
    /// contain the current CA bundle. `all_show` is true if every replica serves a certificate of the signing CA.
    ///
    /// # Guarantees
    ///
    /// A certificate is served only after every configuration has contained its CA for the propagation delay. A CA
    /// is removed only after every replica serves a certificate of another one. Both rules are ignored for an
    /// expired certificate, which no client trusts any more.
    pub(crate) fn next(
        &self,
        keys: &Keys,
        all_show: bool,
        now: OffsetDateTime,
    ) -> Result<Option<(Keys, &'static str)>, AuthorityError> {
        let is_over = |certificate: &str| {
            Period::of(certificate).map_or(true, |period: Period| period.is_over(now))
        };
        let is_due = |certificate: &str| {
            Period::of(certificate).map_or(true, |period: Period| period.is_due(now))
        };
        let mut next = keys.clone();
        if let Some(incoming) = &keys.incoming {
            if is_over(&incoming.ca.certificate) {
                next.incoming = None;
                return Ok(Some((next, "removing an incoming CA that has expired")));
            }
            // Clients reject every certificate of an expired CA, so waiting would not help.
            let must_wait = !is_over(&keys.signing.certificate);
            let since = incoming.carried_since.filter(|since| *since <= now);
            if must_wait && since.is_none() {
                next.incoming = Some(Incoming {
                    carried_since: Some(now),
                    ..incoming.clone()
                });
                return Ok(Some((next, "every configuration contains the incoming CA")));
            }
            if !must_wait || since.is_some_and(|since| now >= since + self.settle) {
                return Ok(Some((self.promote(next, now)?, "signing with the new CA")));
            }
        } else if is_over(&keys.signing.certificate) {
            let fresh = self.fresh(now)?;
            return Ok(Some((fresh, "the CA has expired; generated a new one")));
        } else if is_due(&keys.signing.certificate)
            || (keys.rotation_asked && keys.outgoing.is_empty())
        {
            next.incoming = Some(Incoming {
                ca: Ca::generate(self.ca_lifetime, now)?,
                carried_since: None,
            });
            next.rotation_asked = false;
            return Ok(Some((next, "introducing a new CA")));
        }
        if all_show && !keys.outgoing.is_empty() {
            next.outgoing.clear();
            return Ok(Some((
                next,
                "every replica serves a certificate of the new CA; removing the old one",
            )));
        }
        if keys.outgoing.iter().any(|certificate| is_over(certificate)) {
            next.outgoing.retain(|certificate| !is_over(certificate));
            return Ok(Some((next, "removing a CA that has expired")));
        }
        self.renewed(keys, now)
    }

    /// Returns the keys with a new serving certificate of the same CA, if one is due.
    pub(crate) fn renewed(
        &self,
        keys: &Keys,
        now: OffsetDateTime,
    ) -> Result<Option<(Keys, &'static str)>, AuthorityError> {
        let serving = &keys.serving;
        let is_due = Period::of(&serving.certificate).map_or(true, |period| period.is_due(now));
        if !is_due && serving.has_names(&self.dns_names) {
            return Ok(None);
        }
        let signing = &keys.signing;
        let next = Keys {
            serving: signing.sign(&self.dns_names, self.leaf_lifetime, now)?,
            ..keys.clone()
        };
        Ok(Some((next, "renewing the serving certificate")))
    }

    fn promote(&self, mut keys: Keys, now: OffsetDateTime) -> Result<Keys, AuthorityError> {
        let Some(incoming) = keys.incoming.take() else {
            return Ok(keys);
        };
        keys.serving = incoming.ca.sign(&self.dns_names, self.leaf_lifetime, now)?;
        let signed_before = std::mem::replace(&mut keys.signing, incoming.ca);
        keys.outgoing.push(signed_before.certificate);
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn plan() -> Plan {
        Plan {
            dns_names: vec!["webhook".to_owned()],
            ca_lifetime: 90 * HOUR,
            leaf_lifetime: 30 * HOUR,
            settle: HOUR,
        }
    }

    fn start() -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + 500_000 * HOUR
    }

    fn step(keys: &Keys, all_show: bool, after: Duration) -> Option<Keys> {
        let next = plan().next(keys, all_show, start() + after).expect("keys");
        next.map(|(keys, _)| keys)
    }

    fn introducing() -> Keys {
        let mut keys = plan().fresh(start()).expect("keys");
        keys.rotation_asked = true;
        let keys = step(&keys, false, Duration::ZERO).expect("a new CA");
        assert!(!keys.rotation_asked);
        keys
    }

    #[test]
    fn overwriting_a_configuration_restarts_the_propagation_delay() {
        let keys = introducing();
        assert!(keys.waiting_anew().is_none(), "the delay has not started");
        let keys = step(&keys, false, Duration::ZERO).expect("the delay starts");
        let half = HOUR / 2;
        assert!(step(&keys, false, half).is_none());
        let keys = keys.waiting_anew().expect("the delay is reset");
        let keys = step(&keys, false, half).expect("the delay starts again");
        assert!(
            step(&keys, false, HOUR).is_none(),
            "the first half hour does not count"
        );
        let keys = step(&keys, false, HOUR + half).expect("it signs");
        assert!(keys.incoming.is_none());
        assert_eq!(keys.outgoing.len(), 1);
    }

    #[test]
    fn a_start_time_in_the_future_restarts_the_propagation_delay() {
        let keys = introducing();
        let ahead = step(&keys, false, 50 * HOUR).expect("the delay starts");
        let corrected = step(&ahead, false, HOUR).expect("the delay starts again");
        let since = corrected
            .incoming
            .and_then(|incoming| incoming.carried_since);
        assert_eq!(since, Some(start() + HOUR));
    }

    #[test]
    fn only_the_serving_certificate_is_renewed_if_its_ca_is_not_due() {
        let keys = plan().fresh(start()).expect("keys");
        assert!(step(&keys, false, 19 * HOUR).is_none());
        let renewed = step(&keys, false, 20 * HOUR).expect("a new pair");
        assert!(renewed.signing == keys.signing && renewed.serving != keys.serving);
        let other = Plan {
            dns_names: vec!["webhook".to_owned(), "other".to_owned()],
            ..plan()
        };
        let (renamed, _) = other
            .next(&keys, false, start())
            .expect("keys")
            .expect("a pair for both names");
        assert!(renamed.serving.has_names(&other.dns_names));
        // A replica of an older release, configured with the first name only, changes nothing.
        assert!(step(&renamed, false, Duration::ZERO).is_none());
    }

    #[test]
    fn an_expired_ca_is_replaced_without_delay() {
        let keys = introducing();
        let keys = step(&keys, false, 89 * HOUR).expect("the delay starts");
        let promoted = step(&keys, false, 90 * HOUR);
        // Both CAs have expired by then.
        assert!(promoted.is_some_and(|keys| keys.incoming.is_none()));

        let keys = plan().fresh(start()).expect("keys");
        let late = step(&keys, false, 90 * HOUR).expect("all new");
        assert!(late.signing != keys.signing && late.outgoing.is_empty());
    }

    #[test]
    fn an_old_ca_that_a_replica_still_uses_remains_until_it_expires() {
        let keys = introducing();
        let keys = step(&keys, false, HOUR).expect("the delay starts");
        let keys = step(&keys, false, 2 * HOUR).expect("it signs");
        assert!(step(&keys, false, 3 * HOUR).is_none());
        assert!(step(&keys, true, 3 * HOUR).is_some_and(|keys| keys.outgoing.is_empty()));
        let mut renewed = keys;
        // Later than anything else is due.
        renewed.signing = Ca::generate(900 * HOUR, start()).expect("a CA");
        renewed.serving = renewed
            .signing
            .sign(&plan().dns_names, 900 * HOUR, start())
            .expect("a pair");
        assert!(step(&renewed, false, 89 * HOUR).is_none());
        assert!(step(&renewed, false, 90 * HOUR).is_some_and(|keys| keys.outgoing.is_empty()));
    }
}
