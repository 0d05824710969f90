//! Reconciler of the Vector kinds. So far, it validates the objects and reports the result in their status; it does not
//! create the workloads that run pipelines.

mod hash;
mod judging;
mod neighbours;

pub use judging::ValidateOnlyReconciler;
