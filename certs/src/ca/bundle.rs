//! CAs and serving certificate of an installation.

use time::OffsetDateTime;

use crate::ca::authority::{CertKeyPair, CertificateAuthority, Validity, is_key_of};

/// CAs and TLS key pair of an installation.
///
/// A CA starts as [`next_ca`](Self::next_ca), then becomes [`current_ca`](Self::current_ca), and ends as
/// [`previous_cas`](Self::previous_cas). Each step is one write.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CertificateBundle {
    /// Current CA, which signs the serving certificate.
    pub(crate) current_ca: CertificateAuthority,
    /// Next CA, which is injected but does not sign yet.
    pub(crate) next_ca: Option<NextCa>,
    /// Certificates of previous CAs, which no longer sign but are still trusted.
    pub(crate) previous_cas: Vec<String>,
    /// TLS key pair that every replica serves.
    pub(crate) serving: CertKeyPair,
    /// If true, a user has requested a new CA.
    pub(crate) rotation_requested: bool,
}

/// Next CA, while it is injected into every configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct NextCa {
    pub(crate) ca: CertificateAuthority,
    /// Time since which every configuration has contained it without interruption.
    pub(crate) injected_at: Option<OffsetDateTime>,
}

/// Phase of the CA rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RotationPhase {
    /// No rotation: one CA signs and is trusted.
    Stable,
    /// A new CA is injected, but does not sign yet.
    Introducing,
    /// The new CA signs, and an old CA is still trusted.
    Retiring,
}

impl RotationPhase {
    pub(crate) const ALL: [Self; 3] = [Self::Stable, Self::Introducing, Self::Retiring];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Introducing => "introducing",
            Self::Retiring => "retiring",
        }
    }
}

impl CertificateBundle {
    pub(crate) fn phase(&self) -> RotationPhase {
        match (&self.next_ca, self.previous_cas.is_empty()) {
            (Some(_), _) => RotationPhase::Introducing,
            (None, false) => RotationPhase::Retiring,
            (None, true) => RotationPhase::Stable,
        }
    }

    /// Restarts the propagation delay of the next CA. Returns `None` if the delay has not started.
    pub(crate) fn with_restarted_delay(&self) -> Option<Self> {
        let next_ca = self.next_ca.as_ref()?;
        next_ca.injected_at?;
        Some(Self {
            next_ca: Some(NextCa {
                injected_at: None,
                ..next_ca.clone()
            }),
            ..self.clone()
        })
    }

    /// Checks that the CAs, their keys and the serving certificate belong together. If they do not, signing with them
    /// would break the webhook: another client has written them, or they are damaged.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        // A CA without its key needs another one that replaces it.
        let is_being_replaced = self.current_ca.is_without_key() && self.next_ca.is_some();
        if !is_being_replaced && !self.current_ca.has_matching_key() {
            return Err("`ca.key` does not match the first certificate in `ca.crt`");
        }
        if let Some(next_ca) = &self.next_ca
            && !next_ca.ca.has_matching_key()
        {
            return Err("`next-ca.key` does not match the second certificate in `ca.crt`");
        }
        if self.previous_cas.iter().any(|ca| Validity::of(ca).is_err()) {
            return Err("`ca.crt` contains a block that is not a certificate");
        }
        if !is_key_of(&self.serving.key, &self.serving.certificate) {
            return Err("`tls.key` does not match `tls.crt`");
        }
        let previous_cas = self.previous_cas.iter().map(String::as_str);
        let mut cas = std::iter::once(self.current_ca.certificate.as_str()).chain(previous_cas);
        if !cas.any(|ca| self.serving.is_issued_by(ca)) {
            return Err("`tls.crt` was not signed by any CA in `ca.crt`");
        }
        Ok(())
    }

    /// Returns the CA bundle that API servers must trust: the current CA, the next one, and previous ones.
    pub(crate) fn ca_bundle(&self) -> String {
        let next_ca = self.next_ca.iter().map(|next_ca| &next_ca.ca);
        let certificates = std::iter::once(&self.current_ca)
            .chain(next_ca)
            .map(|ca| &ca.certificate)
            .chain(&self.previous_cas);
        certificates.map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keys_that_do_not_belong_together_are_detected() {
        let (lifetime, now) = (Duration::from_hours(1), OffsetDateTime::now_utc());
        let ca = || CertificateAuthority::generate(lifetime, now).expect("a CA");
        let (signing, other) = (ca(), ca());
        let sign = |ca: &CertificateAuthority| {
            ca.sign(&["webhook".to_owned()], lifetime, now)
                .expect("a pair")
        };
        let keys = CertificateBundle {
            serving: sign(&signing),
            current_ca: signing.clone(),
            next_ca: None,
            previous_cas: Vec::new(),
            rotation_requested: false,
        };
        assert_eq!(keys.check(), Ok(()));
        let stolen = CertificateBundle {
            current_ca: CertificateAuthority {
                key: other.key.clone(),
                ..signing
            },
            ..keys.clone()
        };
        assert!(
            stolen
                .check()
                .is_err_and(|message| message.contains("`ca.key`"))
        );
        let mut foreign = CertificateBundle {
            serving: sign(&other),
            ..keys
        };
        assert!(
            foreign
                .check()
                .is_err_and(|message| message.contains("`tls.crt`"))
        );
        foreign.previous_cas.push(other.certificate);
        assert_eq!(
            foreign.check(),
            Ok(()),
            "a previous CA may still have signed the serving certificate"
        );
    }
}
