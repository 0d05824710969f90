//! Finalizers that keep an object from being deleted while others use it.

pub(crate) mod in_use;
