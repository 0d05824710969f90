//! Variants of the cases.

/// Time at which the webhook has seen the programs of a pipeline.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// In this review.
    First,
    /// In an earlier review.
    Before,
}

/// Spec of an object since its last reconciliation.
#[derive(Clone, Copy, Debug)]
pub enum Spec {
    /// It is the same: nothing is written.
    Unchanged,
    /// It has changed: the children and the status are written.
    Changed,
}
