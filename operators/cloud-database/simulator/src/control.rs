//! Control of a simulator by a test.

pub(crate) mod authorization;
pub(crate) mod injection;
mod instances;
pub(crate) mod journal;
mod resources;
pub(crate) mod roles;
pub(crate) mod service;
pub(crate) mod simulator;
