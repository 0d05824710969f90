//! CAs and serving certificate of an installation.

use time::OffsetDateTime;

use crate::authority::{Ca, Pair};

/// CAs and TLS key pair of an installation.
///
/// A CA starts as [`incoming`](Self::incoming), then becomes [`signing`](Self::signing), and ends as
/// [`outgoing`](Self::outgoing). Each step is one write.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Current CA, which signs the serving certificate.
    pub(crate) signing: Ca,
    /// Next CA, which is injected but does not sign yet.
    pub(crate) incoming: Option<Incoming>,
    /// Certificates of previous CAs, which no longer sign but are still trusted.
    pub(crate) outgoing: Vec<String>,
    /// TLS key pair that every replica serves.
    pub(crate) serving: Pair,
    /// If true, a user has requested a new CA.
    pub(crate) rotation_asked: bool,
}

/// Next CA, while it is injected into every configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) ca: Ca,
    /// Time since which every configuration has contained it without interruption.
    pub(crate) carried_since: Option<OffsetDateTime>,
}

/// Phase of the CA rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No rotation: one CA signs and is trusted.
    Steady,
    /// A new CA is injected, but does not sign yet.
    Introducing,
    /// The new CA signs, and an old CA is still trusted.
    Retiring,
}

impl Phase {
    pub(crate) const ALL: [Self; 3] = [Self::Steady, Self::Introducing, Self::Retiring];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Introducing => "introducing",
            Self::Retiring => "retiring",
        }
    }
}

impl Keys {
    pub(crate) fn phase(&self) -> Phase {
        match (&self.incoming, self.outgoing.is_empty()) {
            (Some(_), _) => Phase::Introducing,
            (None, false) => Phase::Retiring,
            (None, true) => Phase::Steady,
        }
    }

    /// Restarts the propagation delay of the incoming CA. Returns `None` if the delay has not started.
    pub(crate) fn waiting_anew(&self) -> Option<Self> {
        let incoming = self.incoming.as_ref()?;
        incoming.carried_since?;
        Some(Self {
            incoming: Some(Incoming {
                carried_since: None,
                ..incoming.clone()
            }),
            ..self.clone()
        })
    }

    /// Checks that the CAs, their keys and the serving certificate belong together. If they do not, another client
    /// has written them, and signing with them would break the webhook.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let incoming = self.incoming.iter().map(|incoming| &incoming.ca);
        if !std::iter::once(&self.signing).chain(incoming).all(Ca::fits) {
            return Err("`ca.key` does not match the first certificate in `ca.crt`");
        }
        let outgoing = self.outgoing.iter().map(String::as_str);
        let mut cas = std::iter::once(self.signing.certificate.as_str()).chain(outgoing);
        if !cas.any(|ca| self.serving.names_issuer(ca)) {
            return Err("`tls.crt` was not signed by any CA in `ca.crt`");
        }
        Ok(())
    }

    /// Returns the CA bundle that API servers must trust: the current CA, the next one, and previous ones.
    pub(crate) fn trusted(&self) -> String {
        let incoming = self.incoming.iter().map(|incoming| &incoming.ca);
        let certificates = std::iter::once(&self.signing)
            .chain(incoming)
            .map(|ca| &ca.certificate)
            .chain(&self.outgoing);
        certificates.map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keys_that_do_not_belong_together_are_detected() {
        let (life, now) = (Duration::from_hours(1), OffsetDateTime::now_utc());
        let ca = || Ca::generate(life, now).expect("a CA");
        let (signing, other) = (ca(), ca());
        let sign = |ca: &Ca| ca.sign(&["webhook".to_owned()], life, now).expect("a pair");
        let keys = Keys {
            serving: sign(&signing),
            signing: signing.clone(),
            incoming: None,
            outgoing: Vec::new(),
            rotation_asked: false,
        };
        assert_eq!(keys.check(), Ok(()));
        let stolen = Keys {
            signing: Ca {
                key: other.key.clone(),
                ..signing
            },
            ..keys.clone()
        };
        assert!(stolen.check().is_err_and(|said| said.contains("`ca.key`")));
        let mut foreign = Keys {
            serving: sign(&other),
            ..keys
        };
        assert!(
            foreign
                .check()
                .is_err_and(|said| said.contains("`tls.crt`"))
        );
        foreign.outgoing.push(other.certificate);
        assert_eq!(
            foreign.check(),
            Ok(()),
            "a previous CA may still have signed the serving certificate"
        );
    }
}
