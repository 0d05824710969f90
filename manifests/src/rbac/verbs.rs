//! Verbs of users.

/// Verbs of users who read objects.
pub(crate) const READ: [&str; 3] = ["get", "list", "watch"];
/// Verbs of users who write objects. They may not write a status.
pub(crate) const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];
