//! Injection of the CA bundle into webhook configurations and CRDs.

pub(crate) mod notices;
pub(crate) mod repair_pace;
pub(crate) mod target;
pub(crate) mod webhook_service;
