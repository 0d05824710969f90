//! State of the simulated service: regions with their instances and snapshots.

pub(crate) mod automated_backup;
pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod instance;
pub(crate) mod phase;
pub(crate) mod place;
pub(crate) mod region;
pub(crate) mod reported;
pub(crate) mod resources;
pub(crate) mod snapshot;
