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
