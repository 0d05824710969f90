//! Control of a simulator by a test.

pub(crate) mod injection;
pub(crate) mod journal;
pub(crate) mod service;
pub(crate) mod simulator;
