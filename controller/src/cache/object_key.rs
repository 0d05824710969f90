//! Key of an object.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;

use crate::queue::ready_keys::Namespaced;

/// Namespace and name of an object. Clones share the text: several collections contain the key of each object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    /// `NAMESPACE/NAME`, with an empty namespace if the object is cluster-scoped. A namespace contains no slash; the name that
    /// a user has written may contain one.
    text: Arc<str>,
}

impl ObjectKey {
    /// Returns the key of an object. The namespace of a cluster-scoped object is empty.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            text: format!("{namespace}/{name}").into(),
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

    fn parts(&self) -> (&str, &str) {
        self.text.split_once('/').unwrap_or_default()
    }
}

impl Namespaced for ObjectKey {
    fn namespace(&self) -> &str {
        Self::namespace(self)
    }
}

/// By namespace, then by name.
impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `NAMESPACE/NAME`, or the name alone without a namespace.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.strip_prefix('/').unwrap_or(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slash_is_not_a_namespace() {
        let (cluster_scoped, namespaced) = (ObjectKey::new("", "n/a"), ObjectKey::new("n", "a"));
        assert_ne!(cluster_scoped, namespaced);
        assert_eq!(
            (cluster_scoped.namespace(), cluster_scoped.name()),
            ("", "n/a")
        );
        assert_eq!((namespaced.namespace(), namespaced.name()), ("n", "a"));
        assert_eq!(ObjectKey::new("", "a").to_string(), "a");
    }

    #[test]
    fn keys_are_ordered_by_namespace_and_name() {
        let mut keys = [
            ("shop-staging", "x"),
            ("shop", "y"),
            ("", "z"),
            ("shop", "x"),
        ]
        .map(|(namespace, name)| ObjectKey::new(namespace, name));
        keys.sort();
        let sorted = keys.map(|key| key.to_string());
        assert_eq!(sorted, ["z", "shop/x", "shop/y", "shop-staging/x"]);
    }
}
