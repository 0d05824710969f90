//! Size limits of the components of a configuration.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::component::{Component, ComponentKind, components, is_pattern};

/// Maximum number of components of a pipeline.
const MAX_COMPONENTS: usize = 1000;

/// Maximum length of a component name, in bytes.
const LONGEST_NAME: usize = 256;

/// Maximum number of inputs of all components.
const MAX_INPUTS: usize = 10_000;

/// Maximum number of inputs that are patterns: each is compared with every output.
const MAX_PATTERNS: usize = 100;

/// Maximum number of routes of all components.
const MAX_ROUTES: usize = 10_000;

/// Limits of the components of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentLimits {
    /// Limits of one pipeline.
    OfPipeline,
    /// Limits of the configuration of a whole Vector, which may run many pipelines.
    OfVector,
}

impl ComponentLimits {
    /// Returns the limit that a pipeline has, for this configuration.
    fn scaled(self, limit: usize) -> usize {
        match self {
            Self::OfPipeline => limit,
            Self::OfVector => 100 * limit,
        }
    }
}

/// Returns an error if the components of a configuration exceed a limit.
pub(crate) fn exceeded(config: &Map<String, Value>, limits: ComponentLimits) -> Option<FieldError> {
    let [max_components, max_inputs, max_patterns, max_routes] =
        [MAX_COMPONENTS, MAX_INPUTS, MAX_PATTERNS, MAX_ROUTES].map(|limit| limits.scaled(limit));
    let all: Vec<_> = components(config).collect();
    let wrong =
        |path: &str, detail: String| Some(FieldError::invalid_hidden(FieldPath::new(path), detail));
    if all.len() > max_components {
        let detail = format!(
            "there are {} components, more than the limit of {max_components}; split the pipeline",
            all.len()
        );
        return wrong(most(config).block(), detail);
    }
    let names = all.iter().map(|component| (component, component.id));
    let of_routes = all.iter().flat_map(|component| {
        let names = routes(component);
        names.map(move |name| (component, name))
    });
    let routes = of_routes.clone().count();
    let mut names = names.chain(of_routes);
    if let Some((component, name)) = names.find(|(_, name)| name.len() > LONGEST_NAME) {
        let detail = format!(
            "a name has {} bytes, more than the limit of {LONGEST_NAME}",
            name.len()
        );
        return wrong(component.family.block(), detail);
    }
    if routes > max_routes {
        let detail = format!(
            "there are {routes} routes, more than the limit of {max_routes}; split the pipeline"
        );
        return wrong(ComponentKind::Transform.block(), detail);
    }
    let inputs = all.iter().filter_map(|component| {
        let inputs = component.option("inputs")?.as_array()?;
        Some(inputs.len())
    });
    let inputs: usize = inputs.sum();
    if inputs > max_inputs {
        let detail = format!(
            "the components have {inputs} inputs in total, more than the limit of {max_inputs}; split the pipeline"
        );
        return wrong(most(config).block(), detail);
    }
    let patterns = all.iter().flat_map(Component::inputs);
    let patterns = patterns.filter(|input| is_pattern(input));
    let patterns = patterns.count();
    if patterns > max_patterns {
        let detail = format!(
            "{patterns} inputs are patterns, more than the limit of {max_patterns}; list the components by name"
        );
        return wrong(most(config).block(), detail);
    }
    None
}

/// Returns the names of all routes of a component.
fn routes<'a>(component: &Component<'a>) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
    let named = component.option("route").and_then(Value::as_object);
    let listed = component.option("routes").and_then(Value::as_array);
    let listed = listed.into_iter().flatten();
    let listed = listed.map(|route| route["name"].as_str().unwrap_or_default());
    let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
    named.chain(listed)
}

/// Returns the component kind that has the most components.
fn most(config: &Map<String, Value>) -> ComponentKind {
    let count = |family: &ComponentKind| {
        config
            .get(family.block())
            .and_then(Value::as_object)
            .map_or(0, Map::len)
    };
    ComponentKind::ALL
        .into_iter()
        .max_by_key(count)
        .unwrap_or(ComponentKind::Source)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_configuration_of_a_whole_vector_has_the_components_of_many_pipelines() {
        let source = |index: usize| (format!("s{index}"), json!({"type": "demo_logs"}));
        let sources: Map<_, _> = (0..=MAX_COMPONENTS).map(source).collect();
        let config = Map::from_iter([("sources".to_owned(), sources.into())]);
        assert!(exceeded(&config, ComponentLimits::OfPipeline).is_some());
        assert_eq!(exceeded(&config, ComponentLimits::OfVector), None);
    }
}
