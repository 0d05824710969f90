//! Wiring of each operator: one file for each.

pub(crate) mod cloud_database;
pub(crate) mod echo;
pub(crate) mod vector;
