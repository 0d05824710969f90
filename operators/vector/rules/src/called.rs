//! What the components of a pipeline are called in the Vector that runs them.
//!
//! `NAMESPACE__PIPELINE__COMPONENT`, with nothing before the first `__` where the pipeline is in no namespace. Neither a
//! namespace nor a pipeline has a `_` in its name: the first two of these divide the three, whatever the component is
//! called, and no two pipelines come to one name.

/// What divides the parts.
pub(crate) const DIVIDER: &str = "__";

/// What stands before the names of a pipeline's components.
pub(crate) struct ComponentNamespace(String);

impl ComponentNamespace {
    pub(crate) fn of(namespace: Option<&str>, pipeline: &str) -> Self {
        let namespace = namespace.unwrap_or_default();
        Self(format!("{namespace}{DIVIDER}{pipeline}{DIVIDER}"))
    }

    /// As the operator of kaasops joins them, which may do so with those of several pipelines to one name.
    pub(crate) fn of_kaasops(namespace: Option<&str>, pipeline: &str) -> Self {
        let namespace = namespace.map(|namespace| format!("{namespace}-"));
        Self(format!("{}{pipeline}-", namespace.unwrap_or_default()))
    }

    pub(crate) fn prepend_to(&self, id: &str) -> String {
        format!("{}{id}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A name that Kubernetes takes.
    const NAME: &str = "[ab]([ab-]{0,3}[ab])?";

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_two_pipelines_come_to_one_name(
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
    fn kaasops_operator_joins_several_to_one() {
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
