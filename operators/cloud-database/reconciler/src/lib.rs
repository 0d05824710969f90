//! CloudDatabase: the step that keeps an AWS RDS instance as the object says.

#![allow(clippy::doc_markdown, reason = "product names are no code")]

mod credentials;
mod deletion;
mod drift;
mod instances;
mod reconciler;

pub use instances::Instances;
pub use reconciler::{CloudDatabaseReconciler, Timing};
