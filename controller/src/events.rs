//! Kubernetes Events.

pub(crate) mod recorder;
