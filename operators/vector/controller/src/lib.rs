//! Reconcilers of the Vector kinds. Pipelines are validated, and the result is reported in their status. The workloads
//! that select them run them: [`owned`] returns the objects that a workload consists of.

mod change_preview;
mod fingerprint;
mod gzip;
mod learning;
pub mod owned;
mod related_pipelines;
mod run;
mod validate_only;

pub use crate::change_preview::preview_change;
pub use crate::learning::{
    CatalogueLearner, ImageSchema, LearningState, SchemaSource, SchemaSourceError, UnusableSchema,
    VersionToLearn,
};
pub use crate::run::{
    CheckSlots, ExactCheck, ExactCheckResult, Installation, PodChecks, QuotaAudit, WORKLOAD_PODS,
    WORKLOAD_PODS_HELP, WorkloadNamespaces, WorkloadPods, WorkloadReconciler,
    controller_installation, has_pod_monitors, rbac_rules,
};
pub use crate::validate_only::ValidateOnlyReconciler;
