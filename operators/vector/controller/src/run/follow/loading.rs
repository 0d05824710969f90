//! State of the Pods of a workload, as far as the statuses of its pipelines depend on it.

/// State of the Pods that load the published configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loading {
    /// All have loaded it.
    Done,
    /// Some have not, or it is not known yet.
    Open,
    /// They are not observed.
    Unobserved,
}
