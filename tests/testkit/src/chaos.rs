//! Chaos for operators, as a library.
//!
//! [`chaos`] starts an operator on a real control plane, changes its objects while processes, the API server and the external
//! system fail, and then checks that what exists is what was asked for. [`ExternalSystem`] is the author's simulator of
//! what the operator manages outside the cluster. A [`Failure`] names the seed, the broken [`Property`], what was expected
//! and found, and what happened to the object.

mod api_client;
mod calm;
mod differences;
mod disruptions;
mod expectations;
mod external_proxy;
mod external_system;
mod failure;
mod fault_plan;
mod journal;
mod observed_reconciler;
mod owned_objects;
mod polling;
mod process;
mod process_state;
mod related_objects;
mod rollouts;
mod runner;
mod running_process;
mod secrets;
mod status_claims;
mod trial;
mod trial_state;
mod violation;
mod workload;

pub use crate::chaos::expectations::{ActualState, BrokenInvariant};
pub use crate::chaos::external_system::{ExternalSystem, HttpBackend};
pub use crate::chaos::failure::Failure;
pub use crate::chaos::process::{ExternalCalls, ExternalFault, Process};
pub use crate::chaos::runner::{Chaos, Summary, chaos};
pub use crate::chaos::violation::{Property, Violation};
