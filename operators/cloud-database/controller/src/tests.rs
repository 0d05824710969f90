//! Reconciliations on the simulator of RDS, without an API server.

mod absence;
mod allowed_sources;
mod credentials;
mod deletions;
mod encryption;
mod environment;
mod errors;
mod modifications;
mod origins;
mod quotas;
mod recovery;
mod regions;
mod remains;
mod retained_backups;
mod sources;
mod statuses;
mod steady;
mod suspension;
mod taken_back;
