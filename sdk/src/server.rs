//! The health and metrics port, and the runtime of a server.

pub(crate) mod admin;
mod delegated_auth;
pub(crate) mod health;
pub(crate) mod runtime;
pub(crate) mod secure_metrics;
mod signals;
