//! States through which an instance goes one after the other.

use std::time::Duration;

/// State of an instance for a while.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) status: String,
    pub(crate) end: End,
    pub(crate) effect: Effect,
}

/// Event that ends a state that a test sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The state lasts until the test releases the instance.
    Released,
    /// The state lasts for a simulated time.
    After(Duration),
    /// The state lasts until this operation is called for the instance. RDS accepts the call in this state.
    Call(String),
}

/// Change that the end of a state makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The instance has its endpoint and its time of creation.
    Created,
    /// The first or another backup exists.
    BackedUp,
    /// Modifications are applied: those that RDS applies as soon as possible, and those that have waited for a
    /// maintenance window, too, if that is set.
    Modified {
        with_pending: bool,
    },
    /// A replica is an instance of its own.
    Promoted,
    /// Storage has been optimized.
    Optimized,
    /// The parameters of the parameter group are in use.
    Rebooted,
    /// The instance has stopped.
    Stopped,
    /// A stopped instance starts.
    StartDue,
    /// The instance no longer exists.
    Deleted,
}

impl Phase {
    pub(crate) fn of(status: &str, length: Duration, effect: Effect) -> Self {
        Self {
            status: status.to_owned(),
            end: End::After(length),
            effect,
        }
    }
}
