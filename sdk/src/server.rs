//! The health and metrics port, and the runtime of a server.

pub(crate) mod admin;
pub(crate) mod health;
pub(crate) mod runtime;
mod signals;
mod delegated_auth;
pub(crate) mod secure_metrics;
