//! One file for each subcommand.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod controller;
#[cfg(feature = "dev")]
pub(crate) mod dev;
pub(crate) mod manifests;
pub(crate) mod rules;
pub(crate) mod shell;
pub(crate) mod status;
pub(crate) mod uninstall;
pub(crate) mod webhook;
