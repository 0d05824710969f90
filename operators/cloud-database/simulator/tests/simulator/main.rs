//! The simulator, called with the SDK of AWS as the operator calls it.

mod accounts;
mod automated_backups;
mod client;
mod comparison;
mod constraints;
mod control;
mod creation;
mod deletion;
mod faults;
mod listing;
mod model;
mod modification;
mod offers;
mod power;
mod restore;
mod snapshots;
mod tags;
