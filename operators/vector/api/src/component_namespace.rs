//! Component names in the configuration of the Vector process that runs a pipeline.
//!
//! The format is `NAMESPACE__PIPELINE__COMPONENT`; the namespace is empty for a cluster-scoped pipeline. The names of
//! namespaces and pipelines contain no `_`. So the first two `__` always separate the three parts, whatever the name of
//! the component is, and two pipelines never get the same name.

/// Separator of the parts of a name.
pub(crate) const DIVIDER: &str = "__";

/// Prefix of the component names of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentNamespace(String);

impl ComponentNamespace {
    /// Returns the prefix of a pipeline. The namespace of a cluster-scoped pipeline is `None`.
    #[must_use]
    pub fn of(namespace: Option<&str>, pipeline: &str) -> Self {
        let namespace = namespace.unwrap_or_default();
        Self(format!("{namespace}{DIVIDER}{pipeline}{DIVIDER}"))
    }

    /// Returns the prefix of the kaasops operator, with which several pipelines may get the same name.
    #[must_use]
    pub fn of_kaasops(namespace: Option<&str>, pipeline: &str) -> Self {
        let namespace = namespace.map(|namespace| format!("{namespace}-"));
        Self(format!("{}{pipeline}-", namespace.unwrap_or_default()))
    }

    /// Returns the prefix as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of a component, or of an output of one, with the prefix.
    #[must_use]
    pub fn prepend_to(&self, id: &str) -> String {
        format!("{}{id}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Pattern of names that are valid in Kubernetes.
    const NAME: &str = "[ab]([ab-]{0,3}[ab])?";

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn two_pipelines_never_get_the_same_name(
            all in prop::collection::btree_set((prop::option::of(NAME), NAME, "[ab_-]{0,4}"), 2..200),
        ) {
            let mut owners = BTreeMap::new();
            for (namespace, pipeline, id) in &all {
                let called = ComponentNamespace::of(namespace.as_deref(), pipeline).prepend_to(id);
                let before = owners.insert(called.clone(), (namespace, pipeline, id));
                prop_assert!(before.is_none(), "{called}: {before:?} and {namespace:?} {pipeline} {id}");
            }
        }
    }

    #[test]
    fn the_kaasops_operator_gives_several_pipelines_the_same_name() {
        let joined = |namespace, pipeline, id| {
            ComponentNamespace::of_kaasops(namespace, pipeline).prepend_to(id)
        };
        let called = "a-b-c-in";
        assert_eq!(joined(Some("a-b"), "c", "in"), called);
        assert_eq!(joined(Some("a"), "b-c", "in"), called);
        assert_eq!(joined(None, "a", "b-c-in"), called);
        let own =
            |namespace, pipeline| ComponentNamespace::of(namespace, pipeline).prepend_to("in");
        assert_eq!(own(Some("a-b"), "c"), "a-b__c__in");
        assert_eq!(own(Some("a"), "b-c"), "a__b-c__in");
        assert_eq!(own(None, "a-b-c"), "__a-b-c__in");
    }
}
