//! Test kit for operator authors, on a real control plane.
//!
//! [`FaultInjector`] records every call to the API server and can make single calls fail. [`DeterminismCheck`] calls a
//! handler twice and fails if the two responses differ.
//! [`Controller::reconcile_once`](lockstep_controller::Controller::reconcile_once) runs one reconciliation, and
//! [`RunningController`] is a controller that runs until it is stopped. [`Cases`] are files with objects and the errors
//! that each must get, everywhere. [`assert_lossless_conversion`] tests the conversion between versions. Most tests start with [`operator`], [`objects`]
//! and [`apply`].
//!
//! [`chaos`](crate::chaos::chaos) tests a whole operator: it injects faults into everything that the operator depends on,
//! and checks that the desired state is reached.

pub mod cases;
pub mod chaos;
mod conversion;
mod crd;
mod determinism_check;
mod fault_injector;
mod kind;
mod namespace;
mod running;
mod service_account;
mod waiting;

pub use cases::Cases;
pub use conversion::assert_lossless_conversion;
pub use crd::toy_crd;
/// Random numbers of the specs of a chaos test.
pub use fastrand;

pub use determinism_check::DeterminismCheck;
pub use fault_injector::{Call, FaultInjector, When};
pub use kind::{apply, cluster_with, objects, operator};
pub use namespace::TemporaryNamespace;
pub use running::RunningController;
pub use service_account::service_account_client;
pub use waiting::{install_crd, wait_for_condition, wait_until};
