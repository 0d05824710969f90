//! Key of an object.

use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;

/// Namespace and name of an object. Clones share the text: several collections contain the key of each object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// Returns the key of an object. The namespace of a cluster-scoped object is empty.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            Self(name.into())
        } else {
            Self(format!("{namespace}/{name}").into())
        }
    }

    pub(crate) fn of(object: &DynamicObject) -> Self {
        let namespace = object.metadata.namespace.as_deref();
        Self::new(namespace.unwrap_or_default(), &object.name_any())
    }

    /// Returns the namespace, which is empty if the object is cluster-scoped.
    pub(crate) fn namespace(&self) -> &str {
        self.parts().0
    }

    pub(crate) fn name(&self) -> &str {
        self.parts().1
    }

    /// Returns the namespace and the name. Neither contains a slash.
    fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or(("", &self.0))
    }
}

/// `NAMESPACE/NAME`, or the name alone without a namespace.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
