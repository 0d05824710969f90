//! Key of a child.

use std::fmt;

use kube::api::DynamicObject;

use crate::cache::object_key::ObjectKey;

/// Key of a child among the children of one operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChildKey {
    /// Index of its type in the operator's list.
    pub(crate) type_index: usize,
    pub(crate) object: ObjectKey,
}

impl ChildKey {
    pub(crate) fn of(type_index: usize, child: &DynamicObject) -> Self {
        Self {
            type_index,
            object: ObjectKey::of(child),
        }
    }

    /// Returns the namespace, which is empty if the type is cluster-scoped.
    pub(crate) fn namespace(&self) -> &str {
        self.object.namespace()
    }

    pub(crate) fn name(&self) -> &str {
        self.object.name()
    }
}

impl fmt::Display for ChildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
