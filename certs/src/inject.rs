//! Injection of the CA bundle into webhook configurations and CRDs.

pub(crate) mod target;
