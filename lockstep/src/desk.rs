//! The desk: reading files and finding one's way in them.

pub(crate) mod document;
pub(crate) mod sources;
