//! Validator of an additional version of a kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockstep_shared_validation::{
    CompileError, ConversionError, CrdValidator, FieldError, FieldPath, Layer, RuleInfo,
    UnknownFields, ValidationRequest, ValidationResult, Validator, Violation,
};
use serde_json::Value;

/// Validator for a version of a kind that is served, but not the one whose objects the ruleset validates.
///
/// As on the API server, the schema and the CEL rules of the version come first. Then the object is converted, and the ruleset
/// validates it. Errors of the ruleset name the fields of its own version.
pub(crate) struct AdditionalVersion {
    schema: CrdValidator,
    ruleset: Arc<dyn Validator>,
}

impl AdditionalVersion {
    /// Compiles all versions of a kind that are served besides the one of its ruleset.
    pub(crate) fn all_of(ruleset: &Arc<dyn Validator>) -> Result<Vec<Self>, CompileError> {
        let versions = ruleset.crd()["spec"]["versions"].as_array();
        let versions = versions.into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        let names = served.filter_map(|version| version["name"].as_str());
        let others = names.filter(|name| *name != ruleset.version());
        others
            .map(|name| {
                Ok(Self {
                    schema: CrdValidator::compile(ruleset.crd(), name)?,
                    ruleset: Arc::clone(ruleset),
                })
            })
            .collect()
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConversionError> {
        let api_version = format!("{}/{version}", self.ruleset.group());
        self.ruleset.convert(object, &api_version)
    }

    /// Validates an object that satisfies the schema, after its conversion. The result has the object in this version.
    fn validate_converted(
        &self,
        request: &ValidationRequest<'_>,
        valid: &ValidationResult,
    ) -> Result<ValidationResult, ConversionError> {
        let to = self.ruleset.version();
        let object = self.convert(&valid.object, to)?;
        let old = request.old.map(|old| self.convert(old, to)).transpose()?;
        let result = self.ruleset.validate(&ValidationRequest {
            object: &object,
            old: old.as_ref(),
            unknown_fields: UnknownFields::Ignore,
            duplicate_keys: &[],
            ..*request
        });
        Ok(ValidationResult {
            object: self.convert(&result.object, self.version())?,
            ..result
        })
    }
}

/// Returns the result for an object that the rules cannot validate.
fn not_converted(of_schema: ValidationResult, error: &ConversionError) -> ValidationResult {
    let at = FieldPath::new("apiVersion");
    let detail = format!("the object, or the one that it replaces, cannot be converted: {error}");
    let violation = Violation {
        rule: "conversion".to_owned(),
        layer: Layer::Rust,
        error: FieldError::internal(at.clone(), detail),
        at,
        inputs: None,
        is_of_related: false,
    };
    ValidationResult {
        errors: vec![violation],
        has_more_errors: false,
        ..of_schema
    }
}

impl Validator for AdditionalVersion {
    fn group(&self) -> &str {
        self.ruleset.group()
    }

    fn version(&self) -> &str {
        self.schema.version()
    }

    fn kind(&self) -> &str {
        self.ruleset.kind()
    }

    fn crd(&self) -> &Value {
        self.ruleset.crd()
    }

    fn rules(&self) -> Vec<RuleInfo> {
        self.ruleset.rules()
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        self.ruleset.transition_fields()
    }

    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        let of_schema = self.schema.validate(request);
        if !of_schema.is_valid() {
            return of_schema;
        }
        match self.validate_converted(request, &of_schema) {
            Ok(result) => ValidationResult {
                defaults: of_schema.defaults,
                ..result
            },
            Err(error) => not_converted(of_schema, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::{Rule, Ruleset, Severity, ValidatedResource, VersionMapping};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Lamp {
        spec: LampSpec,
    }

    #[derive(Deserialize)]
    struct LampSpec {
        watts: u32,
    }

    impl ValidatedResource for Lamp {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Lamp";

        fn crd() -> Value {
            let watts = json!({"type": "integer", "minimum": 1});
            let color = json!({"type": "string", "default": "white"});
            let spec = json!({
                "type": "object", "required": ["watts"], "properties": {"watts": watts, "color": color},
            });
            let schema =
                json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
            let mut crd = json!({"spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Lamp", "plural": "lamps"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            }});
            for version in Self::additional_versions() {
                version.add_to(&mut crd);
            }
            crd
        }

        fn example() -> Value {
            json!({"spec": {"watts": 1}})
        }

        fn rules() -> Vec<Rule<Self>> {
            vec![Rule {
                id: "too-bright",
                description: "A lamp has at most 100 watts.",
                severity: Severity::Error,
                reference: "https://example.com",
                fields: &["spec.watts"],
                validate: |context, diagnostics| {
                    let watts = context.object.spec.watts;
                    if watts > 100 {
                        diagnostics.invalid("spec.watts", watts, "is more than 100");
                    }
                },
            }]
        }

        fn additional_versions() -> Vec<VersionMapping> {
            vec![
                VersionMapping::new("v1beta1")
                    .moves(&[("spec.watts", "spec.power")])
                    .served(),
                VersionMapping::new("v1alpha1"),
            ]
        }
    }

    #[test]
    fn an_object_is_validated_by_the_schema_of_its_version_and_then_by_the_rules() {
        let ruleset: Arc<dyn Validator> = Arc::new(Ruleset::<Lamp>::compile().expect("rules"));
        let versions = AdditionalVersion::all_of(&ruleset).expect("the schemas compile");
        let [earlier] = versions.as_slice() else {
            panic!("only one other version is served");
        };
        assert_eq!(earlier.version(), "v1beta1");
        let lamp = |spec: Value| {
            json!({
                "apiVersion": "example.com/v1beta1", "kind": "Lamp", "metadata": {"name": "a", "namespace": "b"},
                "spec": spec,
            })
        };
        for (spec, message) in [
            (json!({"power": 5}), ""),
            (
                json!({"power": 0}),
                "spec.power: Invalid value: 0: spec.power in body should be greater than or equal to 1",
            ),
            (
                json!({"power": 200}),
                "spec.watts: Invalid value: 200: is more than 100 [too-bright]",
            ),
            (
                json!({"power": 5, "watts": 5}),
                "spec.watts: Forbidden: unknown field",
            ),
        ] {
            let object = lamp(spec);
            let request = ValidationRequest::create(&object).deny_unknown_fields();
            let result = earlier.validate(&request);
            assert!(
                result.message().starts_with(message) && result.is_valid() == message.is_empty(),
                "{}",
                result.message()
            );
        }
        let object = lamp(json!({"power": 5}));
        let without_version = json!({"spec": {"power": 5}});
        let update = ValidationRequest::update(&object, &without_version);
        let message = earlier.validate(&update).message();
        assert!(message.contains("cannot be converted"), "{message}");
        let result = earlier.validate(&ValidationRequest::create(&object));
        assert_eq!(result.object, lamp(json!({"power": 5, "color": "white"})));
    }
}
