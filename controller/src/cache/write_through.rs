//! Write-through: the latest states of the objects that reconciliations write, as the watches have delivered them or as
//! they have just been written.

pub(crate) mod children;
pub(crate) mod objects;

use kube::api::ApiResource;

use crate::cache::write_through::children::ChildCache;
use crate::cache::write_through::objects::PendingWrites;
use crate::field_manager::FieldManager;

/// Everything that reconciliations have just written.
///
/// # Guarantees
///
/// A write is visible to every later reconciliation. A watch that lags behind does not restore an older state; a later
/// state that it delivers replaces the written one.
pub(crate) struct WriteThrough {
    /// The reconciled objects.
    pub(crate) objects: PendingWrites,
    /// Their children.
    pub(crate) children: ChildCache,
}

impl WriteThrough {
    /// Returns an empty cache for the objects of a type and their children.
    pub(crate) fn new(resource: ApiResource, manager: FieldManager) -> Self {
        Self {
            objects: PendingWrites::new(resource, manager),
            children: ChildCache::default(),
        }
    }
}
