//! Storage of certificates: the Secret of the installation and the files of the Pod.

pub(crate) mod files;
pub(crate) mod secret;
