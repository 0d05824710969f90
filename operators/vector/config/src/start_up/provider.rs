//! Remote provider of the configuration.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::component::components;
use crate::diagnostic::{Check, DiagnosticList};

/// Validates that a configuration with a provider has no components of its own: `vector validate` accepts them, and the
/// start does not.
pub(crate) fn validate(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    if config.contains_key("provider")
        && let Some(component) = components(config).next()
    {
        let detail = "a configuration with a `provider` must have no components of its own; remove the provider or the components";
        let error = FieldError::forbidden(FieldPath::new(component.block), detail);
        problems.add(Check::StartUp, error);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::catalogue::Catalogue;
    use crate::confinement::OptOut;
    use crate::interpolation::Interpolation;
    use crate::start_up::validate_start_up;

    #[test]
    fn a_provider_excludes_components() {
        let provider = json!({"type": "http", "url": "http://a"});
        let source = json!({"in": {"type": "internal_logs"}});
        let number = |config| {
            validate_start_up(
                Catalogue::shipped(),
                &config,
                OptOut::Author,
                Interpolation::Off,
            )
            .len()
        };
        assert_eq!(number(json!({"provider": provider})), 0);
        assert_eq!(number(json!({"sources": source})), 0);
        assert_eq!(number(json!({"provider": provider, "sources": {}})), 0);
        assert_eq!(number(json!({"provider": provider, "sources": source})), 1);
    }
}
