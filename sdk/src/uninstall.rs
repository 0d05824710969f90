//! Removal of an installation in a safe order: first the objects, while the controller still runs, then the
//! installation, and last the CRDs.

pub(crate) mod access;
pub(crate) mod cascade;
pub(crate) mod crds;
pub(crate) mod objects;
pub(crate) mod plan;
pub(crate) mod teardown;
