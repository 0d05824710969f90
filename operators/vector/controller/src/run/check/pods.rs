//! Checks of configurations in Pods, before they are published.
//!
//! ```text
//! changed parts ─► candidates ─► results that are known, Pods that run, Pods to start ─► parts that may be published
//! ```
//!
//! A candidate is the configuration of one pipeline or, once its parts have passed alone, of all pipelines together. Its
//! fingerprint identifies it: a result is stored beside the parts that run now, so that nothing is checked twice. The Pods
//! are owned objects. What a reconciliation does depends only on them and on the stored results, so that a restart of
//! the controller loses nothing.

mod candidate;
mod checks;
mod decision;
mod files;
mod pod_state;
mod records;
mod redaction;
mod shown_log;
mod slots;
mod takeover;

pub(crate) use crate::run::check::pods::candidate::Settings;
pub(crate) use crate::run::check::pods::checks::{Checks, DesiredPod, Finished, ObservedPod};
pub(crate) use crate::run::check::pods::decision::{Candidate, Decision, Pipelines};
pub(crate) use crate::run::check::pods::files::files;
pub(crate) use crate::run::check::pods::pod_state::PodState;
pub(crate) use crate::run::check::pods::records::{KEY, Records};
pub(crate) use crate::run::check::pods::shown_log::shown;
pub use crate::run::check::pods::slots::CheckSlots;
pub(crate) use crate::run::check::pods::slots::SlotRequest;
pub(crate) use crate::run::check::pods::takeover::running;

/// Annotation of a pipeline. When its value changes, the pipeline is checked again.
pub(crate) const FORCE: &str = "vector-operator.kaasops.io/force-configcheck";
