//! Effects on clients, and their times.

/// Effect of a change on the clients of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Clients are not interrupted.
    Online,
    /// Clients are interrupted under conditions that the spec does not show.
    PossibleOutage,
    /// Clients are interrupted for seconds to a few minutes.
    BriefOutage,
    /// The standby takes over, so that clients have to connect again.
    Failover,
    /// The database restarts.
    Restart,
    /// The change is valid and is not requested.
    NotRequested,
    /// The change is denied.
    Denied,
}

/// Time at which RDS applies a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// As soon as possible, whatever `applyChanges` says.
    Now,
    /// As soon as possible, or in the maintenance window, as `applyChanges` says.
    AsApplyChanges,
    /// At the next restart, which RDS does not cause.
    NextRestart,
}

impl Effect {
    /// Returns the words for this effect.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Online => "without an outage",
            Self::PossibleOutage => "with a possible outage",
            Self::BriefOutage => "with a brief outage",
            Self::Failover => "with a failover to the standby",
            Self::Restart => "with a restart of the database",
            Self::NotRequested => "not requested",
            Self::Denied => "denied",
        }
    }

    /// Returns true if the change is requested from RDS.
    #[must_use]
    pub fn is_applied(self) -> bool {
        !matches!(self, Self::NotRequested | Self::Denied)
    }

    /// Returns true if clients are or may be interrupted.
    #[must_use]
    pub fn interrupts(self) -> bool {
        match self {
            Self::PossibleOutage | Self::BriefOutage | Self::Failover | Self::Restart => true,
            Self::Online | Self::NotRequested | Self::Denied => false,
        }
    }
}
