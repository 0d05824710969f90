//! Runs the pipelines of a workload.
//!
//! ```text
//! workload + selected pipelines + parts that run now ─► configuration ─► owned objects
//! ```
//!
//! Everything is read from watches, and from the Secrets that pipelines name. A pipeline whose present generation is not
//! valid runs as it last ran: its part of the configuration is stored in a Secret of the workload.

mod assembled;
mod assembler;
mod catalogue_learning;
mod cluster_features;
mod cluster_scoped_names;
mod config_check;
mod data_directory;
mod data_migration;
mod exact;
mod foreign_services;
mod kaasops;
mod names;
mod objects;
mod observed;
mod pipeline_secrets;
mod pipeline_statuses;
mod plan;
mod pod_checks;
mod pod_refresh;
mod publication;
mod publication_builder;
mod published_changes;
mod quota_audit;
mod quotas;
mod reconciler;
mod reload;
mod stored_parts;
mod validator;
mod warm_checks;
mod warnings;
mod workload;
mod workload_namespaces;
mod workload_status;

pub(crate) use crate::run::data_directory::FIELD as DATA_DIRECTORY_FIELD;
pub(crate) use crate::run::publication::files;
pub(crate) use crate::run::publication_builder::wants_moves;
pub(crate) use crate::run::workload::assembly_options;

pub use crate::run::cluster_features::{Installation, controller_installation, has_pod_monitors};
pub use crate::run::config_check::CheckSlots;
pub use crate::run::exact::{ExactCheck, ExactCheckResult};
pub use crate::run::pod_checks::PodChecks;
pub use crate::run::quota_audit::QuotaAudit;
pub use crate::run::reconciler::{WorkloadReconciler, rbac_rules};
pub use crate::run::reload::{WORKLOAD_PODS, WORKLOAD_PODS_HELP, WorkloadPods};
pub use crate::run::workload::RunsPipelines;
pub use crate::run::workload_namespaces::WorkloadNamespaces;
