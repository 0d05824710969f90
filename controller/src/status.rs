//! The status of an object: conditions, patches and the paused annotation.

pub(crate) mod conditions;
pub(crate) mod merge_patch;
pub(crate) mod patch;
pub(crate) mod paused;
