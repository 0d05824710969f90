//! Propagation of a deletion to what an object manages.

/// Propagation of the deletion of objects, as `--cascade` of `kubectl delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Cascade {
    /// Each object is deleted as its operator does it.
    Background,
    /// The objects are removed without their operator. Everything that they manage stays, inside and outside the
    /// cluster, and nothing manages it any more.
    Orphan,
}
