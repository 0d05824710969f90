//! Everything that an installation signs, serves and trusts.

use time::OffsetDateTime;

use crate::authority::{Ca, Pair};

/// The keys of an installation.
///
/// A CA enters as [`incoming`](Self::incoming), is then the one that signs, and leaves as
/// [`outgoing`](Self::outgoing). Each step is one write.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Signs what is served.
    pub(crate) signing: Ca,
    /// Is trusted already, and signs nothing yet.
    pub(crate) incoming: Option<Incoming>,
    /// Certificates of CAs that sign nothing more, and are still trusted.
    pub(crate) outgoing: Vec<String>,
    /// What every replica serves.
    pub(crate) serving: Pair,
    /// Somebody has asked for a new CA.
    pub(crate) rotation_asked: bool,
}

/// A CA on its way into every configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) ca: Ca,
    /// Since when every configuration has carried it without a break.
    pub(crate) carried_since: Option<OffsetDateTime>,
}

/// How far the exchange of a CA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// One CA, which signs and is trusted.
    Steady,
    /// A new CA is being trusted.
    Introducing,
    /// An old CA is still trusted.
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

    /// The same with the time void for which the incoming CA has been carried, if any had begun.
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

    /// Finds what was put together by somebody else: signing with it would break what is served.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let incoming = self.incoming.iter().map(|incoming| &incoming.ca);
        if !std::iter::once(&self.signing).chain(incoming).all(Ca::fits) {
            return Err("`ca.key` is not the key of the first certificate in `ca.crt`");
        }
        let outgoing = self.outgoing.iter().map(String::as_str);
        let mut cas = std::iter::once(self.signing.certificate.as_str()).chain(outgoing);
        if !cas.any(|ca| self.serving.names_issuer(ca)) {
            return Err("`tls.crt` was signed by none of the CAs in `ca.crt`");
        }
        Ok(())
    }

    /// What API servers have to trust: the CA that signs, the one to come, those that go.
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
    fn keys_that_were_not_made_together_are_told() {
        let (life, now) = (Duration::from_hours(1), OffsetDateTime::now_utc());
        let ca = || Ca::generate(life, now).expect("a CA");
        let (signing, other) = (ca(), ca());
        let sign = |ca: &Ca| ca.sign(&["gate".to_owned()], life, now).expect("a pair");
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
        assert_eq!(foreign.check(), Ok(()), "a CA that goes may still be shown");
    }
}
