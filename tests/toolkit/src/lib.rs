//! What an operator's author tests with, on a real control plane.
//!
//! [`Calls`] sees every call to the API server and lets one of them fail; [`Twice`] asks a handler twice and
//! objects to two answers; [`Loop::step`](controller::Loop::step) runs one round, and [`Running`] is a loop that
//! runs until it is dropped. [`operator`], [`objects`] and [`tell`] are what most tests begin with.

mod calls;
mod crd;
mod kind;
mod namespace;
mod running;
mod twice;
mod waiting;

pub use calls::{Call, Calls, When};
pub use crd::toy_crd;
pub use kind::{cluster_with, objects, operator, tell};
pub use namespace::Leaving;
pub use running::Running;
pub use twice::Twice;
pub use waiting::{becomes, install_crd, stands};
