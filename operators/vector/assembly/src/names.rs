//! Final names of the components of a pipeline.

use lockstep_vector_api::{ComponentNames, ComponentNamespace};

use crate::pipeline::PipelineKey;

/// Names that the configuration itself uses. All begin with a lower-case word and an upper-case letter, which no
/// namespace has.
const RESERVED: [&str; 4] = [DEFAULT_SOURCE, DEFAULT_SINK, METRICS_SOURCE, METRICS_SINK];

/// Source of a configuration without pipelines.
pub(crate) const DEFAULT_SOURCE: &str = "defaultSource";

/// Sink of a configuration without pipelines.
pub(crate) const DEFAULT_SINK: &str = "defaultSink";

/// Source of Vector's own metrics.
pub(crate) const METRICS_SOURCE: &str = "internalMetricsSource";

/// Sink of Vector's own metrics.
pub(crate) const METRICS_SINK: &str = "internalMetricsSink";

/// Beginning of the names of sources and transforms that several pipelines share.
pub(crate) const SHARED: &str = "optimized";

/// Names of the components of one pipeline.
pub(crate) struct FinalNames(Option<ComponentNamespace>);

impl FinalNames {
    /// Returns the names of a pipeline. Those of an administrator may stay as they are written.
    pub(crate) fn of(
        names: ComponentNames,
        pipeline: &PipelineKey,
        skip_prefix: bool,
    ) -> Result<Self, String> {
        let namespace = pipeline.namespace.as_deref();
        if skip_prefix {
            return match namespace {
                None => Ok(Self(None)),
                Some(_) => Err("`spec.skipPrefix`: without the prefix of the pipeline, component names could be those of other tenants; remove this field".to_owned()),
            };
        }
        Ok(Self(Some(match names {
            ComponentNames::Underscores => ComponentNamespace::of(namespace, &pipeline.name),
            ComponentNames::Dashes => ComponentNamespace::of_kaasops(namespace, &pipeline.name),
        })))
    }

    /// Returns the text in front of all names.
    pub(crate) fn prefix(&self) -> &str {
        self.0.as_ref().map_or("", ComponentNamespace::as_str)
    }

    /// Returns the final name of a component, or of an output of one.
    pub(crate) fn of_output(&self, id: &str) -> String {
        match &self.0 {
            Some(prefix) => prefix.prepend_to(id),
            None => id.to_owned(),
        }
    }

    /// Returns the final name of a component, or an error if it would not be valid in Vector or could be the name of
    /// another component.
    pub(crate) fn of_component(&self, id: &str) -> Result<String, String> {
        let name = self.of_output(id);
        if name.contains('.') {
            return Err(format!(
                "the component name `{name}` contains a dot, which Vector does not allow; rename the component or the pipeline"
            ));
        }
        let is_reserved = RESERVED.contains(&&*name) || name.starts_with(SHARED);
        if self.0.is_none() && (is_reserved || name.contains("__")) {
            return Err(format!(
                "the component name `{name}` is reserved; rename the component, or remove `skipPrefix`"
            ));
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: Option<&str>, name: &str) -> PipelineKey {
        PipelineKey {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn names_have_the_prefix_of_the_pipeline() {
        let name = |names, namespace, skip_prefix| {
            let names = FinalNames::of(names, &key(namespace, "p"), skip_prefix)?;
            names.of_component("in")
        };
        let (underscores, dashes) = (ComponentNames::Underscores, ComponentNames::Dashes);
        assert_eq!(
            name(underscores, Some("a"), false).as_deref(),
            Ok("a__p__in")
        );
        assert_eq!(name(underscores, None, false).as_deref(), Ok("__p__in"));
        assert_eq!(name(dashes, Some("a"), false).as_deref(), Ok("a-p-in"));
        assert_eq!(name(dashes, None, false).as_deref(), Ok("p-in"));
        assert_eq!(name(underscores, None, true).as_deref(), Ok("in"));
        let error = name(underscores, Some("a"), true).expect_err("an error");
        assert!(error.starts_with("`spec.skipPrefix`"), "{error}");
    }

    #[test]
    fn no_name_has_a_dot_and_no_name_without_a_prefix_is_reserved() {
        let names = |name, skip_prefix| {
            FinalNames::of(ComponentNames::Underscores, &key(None, name), skip_prefix)
                .expect("names")
        };
        for (name, skip_prefix, id) in [
            ("p", false, "a.b"),
            ("p.q", false, "a"),
            ("p", true, "defaultSource"),
            ("p", true, "internalMetricsSink"),
            ("p", true, "optimizedSource-1"),
            ("p", true, "a__p__in"),
        ] {
            let error = names(name, skip_prefix).of_component(id);
            assert!(error.is_err(), "{name} {id}");
        }
        for (name, skip_prefix, id) in [("p", false, "defaultSource"), ("p.q", true, "a")] {
            let found = names(name, skip_prefix).of_component(id);
            assert!(found.is_ok(), "{found:?}");
        }
    }
}
