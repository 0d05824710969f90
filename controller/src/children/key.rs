//! Key of a child.

use std::fmt;

use kube::api::DynamicObject;

use crate::cache::object_key::ObjectKey;

/// Key of a child among the children of one operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChildKey {
    /// Index of its type in the operator's list.
    pub(crate) type_index: usize,
    /// Empty if the type is cluster-scoped.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ChildKey {
    pub(crate) fn of(type_index: usize, child: &DynamicObject) -> Self {
        let ObjectKey { namespace, name } = ObjectKey::of(child);
        Self {
            type_index,
            namespace,
            name,
        }
    }
}

impl fmt::Display for ChildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
