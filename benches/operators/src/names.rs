//! Names of the compared operators, which are also those of their folders.

pub(crate) const LOCKSTEP: &str = "lockstep";
pub(crate) const KUBE_RS: &str = "kube-rs";
pub(crate) const CONTROLLER_RUNTIME: &str = "controller-runtime";

/// All names, in the order of the report.
pub(crate) const OPERATORS: [&str; 3] = [LOCKSTEP, KUBE_RS, CONTROLLER_RUNTIME];
