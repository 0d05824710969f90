//! The health and metrics port, and the runtime of a server.

pub(crate) mod admin;
pub(crate) mod health;
pub(crate) mod runtime;
