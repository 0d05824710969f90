//! One file for each subcommand.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod controller;
pub(crate) mod dev;
pub(crate) mod manifests;
pub(crate) mod rules;
pub(crate) mod shell;
pub(crate) mod vector;
pub(crate) mod webhook;
