//! CA rotation: computes the next step.

use std::time::Duration;

use time::OffsetDateTime;

use crate::ca::authority::{AuthorityError, CertificateAuthority, Validity};
use crate::ca::bundle::{CertificateBundle, NextCa};

/// Rotation policy: DNS names, lifetimes and propagation delay.
#[derive(Clone, Debug)]
pub struct RotationPolicy {
    /// DNS names that a serving certificate is valid for.
    pub dns_names: Vec<String>,
    /// Validity of a CA certificate.
    pub ca_duration: Duration,
    /// Validity of a serving certificate.
    pub cert_duration: Duration,
    /// Propagation delay: how long every configuration must contain a CA before a certificate that it signed is
    /// served. The process cannot observe which changes each API server has received.
    pub propagation_delay: Duration,
}

impl RotationPolicy {
    /// Generates a new CA and serving certificate.
    pub(crate) fn generate(
        &self,
        now: OffsetDateTime,
    ) -> Result<CertificateBundle, AuthorityError> {
        let signing = CertificateAuthority::generate(self.ca_duration, now)?;
        Ok(CertificateBundle {
            serving: signing.sign(&self.dns_names, self.cert_duration, now)?,
            current_ca: signing,
            next_ca: None,
            previous_cas: Vec::new(),
            rotation_requested: false,
        })
    }

    /// Returns the keys after the next step and a description of the step, if one is due. Every configuration must
    /// contain the current CA bundle. `all_serve` is true if every replica serves a certificate of the signing CA.
    ///
    /// # Guarantees
    ///
    /// A certificate is served only after every configuration has contained its CA for the propagation delay. A CA
    /// is removed only after every replica serves a certificate of another one. Both rules are ignored for an
    /// expired certificate, which no client trusts any more.
    pub(crate) fn next(
        &self,
        keys: &CertificateBundle,
        all_serve: bool,
        now: OffsetDateTime,
    ) -> Result<Option<(CertificateBundle, &'static str)>, AuthorityError> {
        let is_over = |certificate: &str| {
            Validity::of(certificate).map_or(true, |period: Validity| period.is_expired(now))
        };
        let is_due = |certificate: &str| {
            Validity::of(certificate).map_or(true, |period: Validity| period.needs_renewal(now))
        };
        let mut next = keys.clone();
        if let Some(next_ca) = &keys.next_ca {
            if is_over(&next_ca.ca.certificate) {
                next.next_ca = None;
                return Ok(Some((next, "removing the next CA that has expired")));
            }
            // Clients reject every certificate of an expired CA, so waiting would not help. Neither does it if the
            // serving certificate has expired and the key that could renew it is lost.
            let is_lost = keys.current_ca.is_without_key() && is_over(&keys.serving.certificate);
            let must_wait = !is_lost && !is_over(&keys.current_ca.certificate);
            let since = next_ca.injected_at.filter(|since| *since <= now);
            if must_wait && since.is_none() {
                next.next_ca = Some(NextCa {
                    injected_at: Some(now),
                    ..next_ca.clone()
                });
                return Ok(Some((next, "every configuration contains the next CA")));
            }
            if !must_wait || since.is_some_and(|since| now >= since + self.propagation_delay) {
                return Ok(Some((self.promote(next, now)?, "signing with the new CA")));
            }
        } else if is_over(&keys.current_ca.certificate) {
            let fresh = self.generate(now)?;
            return Ok(Some((fresh, "the CA has expired; generated a new one")));
        } else if is_due(&keys.current_ca.certificate)
            || (keys.rotation_requested && keys.previous_cas.is_empty())
        {
            next.next_ca = Some(NextCa {
                ca: CertificateAuthority::generate(self.ca_duration, now)?,
                injected_at: None,
            });
            next.rotation_requested = false;
            return Ok(Some((next, "introducing a new CA")));
        }
        if all_serve && !keys.previous_cas.is_empty() {
            next.previous_cas.clear();
            return Ok(Some((
                next,
                "every replica serves a certificate of the new CA; removing the old one",
            )));
        }
        if keys
            .previous_cas
            .iter()
            .any(|certificate| is_over(certificate))
        {
            next.previous_cas
                .retain(|certificate| !is_over(certificate));
            return Ok(Some((next, "removing a CA that has expired")));
        }
        self.renew_cert(keys, now)
    }

    /// Returns the keys with a new serving certificate of the same CA, if one is due.
    pub(crate) fn renew_cert(
        &self,
        keys: &CertificateBundle,
        now: OffsetDateTime,
    ) -> Result<Option<(CertificateBundle, &'static str)>, AuthorityError> {
        let serving = &keys.serving;
        let is_due =
            Validity::of(&serving.certificate).map_or(true, |period| period.needs_renewal(now));
        let signing = &keys.current_ca;
        // The next CA signs in the place of one whose key is lost.
        if signing.is_without_key() || (!is_due && serving.covers_dns_names(&self.dns_names)) {
            return Ok(None);
        }
        let next = CertificateBundle {
            serving: signing.sign(&self.dns_names, self.cert_duration, now)?,
            ..keys.clone()
        };
        Ok(Some((next, "renewing the serving certificate")))
    }

    fn promote(
        &self,
        mut keys: CertificateBundle,
        now: OffsetDateTime,
    ) -> Result<CertificateBundle, AuthorityError> {
        let Some(next_ca) = keys.next_ca.take() else {
            return Ok(keys);
        };
        keys.serving = next_ca.ca.sign(&self.dns_names, self.cert_duration, now)?;
        let signed_before = std::mem::replace(&mut keys.current_ca, next_ca.ca);
        keys.previous_cas.push(signed_before.certificate);
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn policy() -> RotationPolicy {
        RotationPolicy {
            dns_names: vec!["webhook".to_owned()],
            ca_duration: 90 * HOUR,
            cert_duration: 30 * HOUR,
            propagation_delay: HOUR,
        }
    }

    fn start() -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + 500_000 * HOUR
    }

    fn step(
        keys: &CertificateBundle,
        all_serve: bool,
        after: Duration,
    ) -> Option<CertificateBundle> {
        let next = policy()
            .next(keys, all_serve, start() + after)
            .expect("keys");
        next.map(|(keys, _)| keys)
    }

    fn introducing() -> CertificateBundle {
        let mut keys = policy().generate(start()).expect("keys");
        keys.rotation_requested = true;
        let keys = step(&keys, false, Duration::ZERO).expect("a new CA");
        assert!(!keys.rotation_requested);
        keys
    }

    #[test]
    fn overwriting_a_configuration_restarts_the_propagation_delay() {
        let keys = introducing();
        assert!(
            keys.with_restarted_delay().is_none(),
            "the delay has not started"
        );
        let keys = step(&keys, false, Duration::ZERO).expect("the delay starts");
        let half = HOUR / 2;
        assert!(step(&keys, false, half).is_none());
        let keys = keys.with_restarted_delay().expect("the delay is reset");
        let keys = step(&keys, false, half).expect("the delay starts again");
        assert!(
            step(&keys, false, HOUR).is_none(),
            "the first half hour does not count"
        );
        let keys = step(&keys, false, HOUR + half).expect("it signs");
        assert!(keys.next_ca.is_none());
        assert_eq!(keys.previous_cas.len(), 1);
    }

    #[test]
    fn a_start_time_in_the_future_restarts_the_propagation_delay() {
        let keys = introducing();
        let ahead = step(&keys, false, 50 * HOUR).expect("the delay starts");
        let corrected = step(&ahead, false, HOUR).expect("the delay starts again");
        let since = corrected.next_ca.and_then(|next_ca| next_ca.injected_at);
        assert_eq!(since, Some(start() + HOUR));
    }

    #[test]
    fn only_the_serving_certificate_is_renewed_if_its_ca_is_not_due() {
        let keys = policy().generate(start()).expect("keys");
        assert!(step(&keys, false, 19 * HOUR).is_none());
        let renewed = step(&keys, false, 20 * HOUR).expect("a new pair");
        assert!(renewed.current_ca == keys.current_ca && renewed.serving != keys.serving);
        let other = RotationPolicy {
            dns_names: vec!["webhook".to_owned(), "other".to_owned()],
            ..policy()
        };
        let (renamed, _) = other
            .next(&keys, false, start())
            .expect("keys")
            .expect("a pair for both names");
        assert!(renamed.serving.covers_dns_names(&other.dns_names));
        // A replica of an older release, configured with the first name only, changes nothing.
        assert!(step(&renamed, false, Duration::ZERO).is_none());
    }

    #[test]
    fn an_expired_ca_is_replaced_without_delay() {
        let keys = introducing();
        let keys = step(&keys, false, 89 * HOUR).expect("the delay starts");
        let promoted = step(&keys, false, 90 * HOUR);
        // Both CAs have expired by then.
        assert!(promoted.is_some_and(|keys| keys.next_ca.is_none()));

        let keys = policy().generate(start()).expect("keys");
        let late = step(&keys, false, 90 * HOUR).expect("all new");
        assert!(late.current_ca != keys.current_ca && late.previous_cas.is_empty());
    }

    #[test]
    fn an_old_ca_that_a_replica_still_uses_remains_until_it_expires() {
        let keys = introducing();
        let keys = step(&keys, false, HOUR).expect("the delay starts");
        let keys = step(&keys, false, 2 * HOUR).expect("it signs");
        assert!(step(&keys, false, 3 * HOUR).is_none());
        assert!(step(&keys, true, 3 * HOUR).is_some_and(|keys| keys.previous_cas.is_empty()));
        let mut renewed = keys;
        // Later than anything else is due.
        renewed.current_ca = CertificateAuthority::generate(900 * HOUR, start()).expect("a CA");
        renewed.serving = renewed
            .current_ca
            .sign(&policy().dns_names, 900 * HOUR, start())
            .expect("a pair");
        assert!(step(&renewed, false, 89 * HOUR).is_none());
        assert!(step(&renewed, false, 90 * HOUR).is_some_and(|keys| keys.previous_cas.is_empty()));
    }
}
