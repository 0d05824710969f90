//! Field manager of a program, to which server-side apply attributes what it writes.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

/// Name of the program that a controller belongs to, as the API server records it in `managedFields`.
///
/// Each program has its own: the API server would take two programs with one name for the same client, and remove the
/// fields of one when the other applies an object.
#[derive(Clone, Debug)]
pub(crate) struct FieldManager(Arc<str>);

impl FieldManager {
    pub(crate) fn new(program: &str) -> Self {
        Self(program.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if an entry of `managedFields` is ours.
    pub(crate) fn is_ours(&self, entry: &ManagedFieldsEntry) -> bool {
        entry.manager.as_deref() == Some(self.as_str()) && entry.subresource.is_none()
    }

    /// Returns true if an entry is from a creation of ours.
    pub(crate) fn has_created(&self, entry: &ManagedFieldsEntry) -> bool {
        self.is_ours(entry) && entry.operation.as_deref() == Some("Update")
    }

    /// Returns true if an entry is from a server-side apply of ours.
    pub(crate) fn has_applied(&self, entry: &ManagedFieldsEntry) -> bool {
        self.is_ours(entry) && entry.operation.as_deref() == Some("Apply")
    }
}
