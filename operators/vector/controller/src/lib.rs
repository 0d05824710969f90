//! Reconciler of the Vector kinds. So far, it validates the objects and reports the result in their status; it does not
//! create the workloads that run pipelines. [`owned`] returns the objects that these workloads consist of.

mod fingerprint;
pub mod owned;
mod related_pipelines;
mod validate_only;

pub use crate::validate_only::ValidateOnlyReconciler;
