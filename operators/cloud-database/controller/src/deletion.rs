//! Deletion: what happens to an instance when its object is deleted.

pub(crate) mod absence;
pub(crate) mod deleted;
pub(crate) mod deleted_instance;
pub(crate) mod deletion_policy;
pub(crate) mod final_snapshot;
pub(crate) mod finalization;
pub(crate) mod refused;
pub(crate) mod release;
pub(crate) mod retry;
