//! The certificate authority, its bundle and its rotation.

pub(crate) mod authority;
pub(crate) mod bundle;
pub(crate) mod repair;
pub(crate) mod rotation;
