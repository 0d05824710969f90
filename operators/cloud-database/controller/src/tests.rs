//! Reconciliations on the simulator of RDS, without an API server.

mod deletions;
mod environment;
mod errors;
mod sources;
mod statuses;
