//! The desk: reading files and finding one's way in them.

pub(crate) mod document;
pub(crate) mod jsonl;
pub(crate) mod kinds;
pub(crate) mod sources;
