//! The interface of operator authors: what they implement, what they are given and what they return.

pub(crate) mod error;
pub(crate) mod fake_cache;
pub(crate) mod preconditions;
pub(crate) mod read_object;
pub(crate) mod reconciler;
pub(crate) mod request;
pub(crate) mod secret_access;
pub(crate) mod sync;
