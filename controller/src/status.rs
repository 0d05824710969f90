//! The status of an object: conditions, patches, and the annotations that pause it and request its reconciliation.

pub(crate) mod conditions;
pub(crate) mod merge_patch;
pub(crate) mod patch;
pub(crate) mod paused;
pub(crate) mod reconcile_request;
pub(crate) mod typed;
pub(crate) mod unconfirmed;
