//! Runs the pipelines of a workload, in stages of a reconciliation:
//!
//! ```text
//! collect ─► assemble ─► check ─► publish ─► follow ─► report
//! ```
//!
//! - `collect`: the pipelines that a workload selects, and what it runs now.
//! - `assemble`: the configuration with which Vector starts.
//! - `check`: changed parts are checked by Vector itself, in Pods.
//! - `publish`: the owned objects, and the change that they make. `migrate` says under which names the data is.
//! - `follow`: what the Pods make of it.
//! - `report`: the statuses of the workload and of its pipelines.
//!
//! Everything is read from watches, and from the Secrets that pipelines name. A pipeline whose present generation is not
//! valid runs as it last ran: its part of the configuration is stored in a Secret of the workload.

mod assemble;
mod check;
mod cluster_features;
mod collect;
mod condition;
mod follow;
mod kaasops;
mod migrate;
mod names;
mod publish;
mod reconciler;
mod report;
mod workload;
mod workload_namespaces;

pub(crate) use crate::run::assemble::config_files::files;
pub(crate) use crate::run::collect::data_directory::FIELD as DATA_DIRECTORY_FIELD;
pub(crate) use crate::run::workload::{assembly_options, is_persistent, wants_moves};

pub use crate::run::assemble::quota_audit::QuotaAudit;
pub use crate::run::check::exact::{ExactCheck, ExactCheckResult};
pub use crate::run::check::pod_checks::PodChecks;
pub use crate::run::check::pods::CheckSlots;
pub use crate::run::cluster_features::{Installation, controller_installation, has_pod_monitors};
pub use crate::run::follow::reload::{WORKLOAD_PODS, WORKLOAD_PODS_HELP, WorkloadPods};
pub use crate::run::reconciler::{WorkloadReconciler, rbac_rules};
pub use crate::run::workload_namespaces::WorkloadNamespaces;
