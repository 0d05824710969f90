//! Everything that an installation signs, serves and trusts.

use time::OffsetDateTime;

use crate::authority::{CertKeyPair, CertificateAuthority};

/// The keys of an installation.
///
/// A CA enters as [`incoming`](Self::incoming), is then the one that signs, and leaves as
/// [`outgoing`](Self::outgoing). Each step is one write.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CertificateBundle {
    /// Signs what is served.
    pub(crate) current_ca: CertificateAuthority,
    /// Is trusted already, and signs nothing yet.
    pub(crate) next_ca: Option<NextCa>,
    /// Certificates of CAs that sign nothing more, and are still trusted.
    pub(crate) previous_cas: Vec<String>,
    /// What every replica serves.
    pub(crate) serving: CertKeyPair,
    /// Somebody has asked for a new CA.
    pub(crate) rotation_requested: bool,
}

/// A CA on its way into every configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct NextCa {
    pub(crate) ca: CertificateAuthority,
    /// Since when every configuration has carried it without a break.
    pub(crate) injected_at: Option<OffsetDateTime>,
}

/// How far the exchange of a CA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RotationPhase {
    /// One CA, which signs and is trusted.
    Stable,
    /// A new CA is being trusted.
    Introducing,
    /// An old CA is still trusted.
    Retiring,
}

impl RotationPhase {
    pub(crate) const ALL: [Self; 3] = [Self::Stable, Self::Introducing, Self::Retiring];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "steady",
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

    /// The same with the time void for which the incoming CA has been carried, if any had begun.
    pub(crate) fn with_restarted_delay(&self) -> Option<Self> {
        let incoming = self.next_ca.as_ref()?;
        incoming.injected_at?;
        Some(Self {
            next_ca: Some(NextCa {
                injected_at: None,
                ..incoming.clone()
            }),
            ..self.clone()
        })
    }

    /// Finds what was put together by somebody else: signing with it would break what is served.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let incoming = self.next_ca.iter().map(|incoming| &incoming.ca);
        if !std::iter::once(&self.current_ca)
            .chain(incoming)
            .all(CertificateAuthority::has_matching_key)
        {
            return Err("`ca.key` is not the key of the first certificate in `ca.crt`");
        }
        let outgoing = self.previous_cas.iter().map(String::as_str);
        let mut cas = std::iter::once(self.current_ca.certificate.as_str()).chain(outgoing);
        if !cas.any(|ca| self.serving.is_issued_by(ca)) {
            return Err("`tls.crt` was signed by none of the CAs in `ca.crt`");
        }
        Ok(())
    }

    /// What API servers have to trust: the CA that signs, the one to come, those that go.
    pub(crate) fn ca_bundle(&self) -> String {
        let incoming = self.next_ca.iter().map(|incoming| &incoming.ca);
        let certificates = std::iter::once(&self.current_ca)
            .chain(incoming)
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
    fn keys_that_were_not_made_together_are_told() {
        let (life, now) = (Duration::from_hours(1), OffsetDateTime::now_utc());
        let ca = || CertificateAuthority::generate(life, now).expect("a CA");
        let (signing, other) = (ca(), ca());
        let sign =
            |ca: &CertificateAuthority| ca.sign(&["gate".to_owned()], life, now).expect("a pair");
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
        assert!(stolen.check().is_err_and(|said| said.contains("`ca.key`")));
        let mut foreign = CertificateBundle {
            serving: sign(&other),
            ..keys
        };
        assert!(
            foreign
                .check()
                .is_err_and(|said| said.contains("`tls.crt`"))
        );
        foreign.previous_cas.push(other.certificate);
        assert_eq!(foreign.check(), Ok(()), "a CA that goes may still be shown");
    }
}
