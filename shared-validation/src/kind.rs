//! Trait that each custom resource type implements.

use crd_validation::conversion::VersionMapping;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::defaults::DynamicDefault;
use crate::rule::Rule;
use crate::settings::Settings;

/// Custom resource type together with its rules.
///
/// # Expected flow
///
/// The CRD contains the rules that the schema or CEL can express. [`rules`](ValidatedResource::rules) returns all
/// others. [`Ruleset::compile`](crate::Ruleset::compile) builds one validator from both.
///
/// # Examples
///
/// With kube's `CustomResource`, `#[derive(ValidatedResource)]` implements the trait. By hand:
///
/// ```
/// use lockstep_shared_validation::{Ruleset, ValidatedResource};
/// use serde::Deserialize;
/// use serde_json::{Value, json};
///
/// #[derive(Deserialize)]
/// struct Lamp {}
///
/// impl ValidatedResource for Lamp {
///     const GROUP: &'static str = "example.com";
///     const VERSION: &'static str = "v1";
///     const KIND: &'static str = "Lamp";
///
///     fn crd() -> Value {
///         let watts = json!({"type": "integer", "minimum": 1});
///         let spec = json!({"type": "object", "properties": {"watts": watts}});
///         let schema = json!({"type": "object", "properties": {"spec": spec}});
///         json!({"spec": {
///             "group": "example.com", "scope": "Namespaced", "names": {"kind": "Lamp", "plural": "lamps"},
///             "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
///         }})
///     }
///
///     fn example() -> Value {
///         json!({"spec": {"watts": 5}})
///     }
/// }
///
/// assert!(Ruleset::<Lamp>::compile().is_ok());
/// ```
pub trait ValidatedResource: DeserializeOwned + Send + Sync + 'static {
    /// API group, such as `database.example.com`.
    const GROUP: &'static str;
    /// API version that is validated, such as `v1alpha1`.
    const VERSION: &'static str;
    /// Kind, such as `CloudDatabase`.
    const KIND: &'static str;

    /// Returns the `CustomResourceDefinition`, the only source of the schema.
    fn crd() -> Value;

    /// Returns a valid object of the kind, without metadata. Admission probes are built from it.
    fn example() -> Value;

    /// Returns the rules of the Rust layer, for conditions that neither the schema nor CEL can express.
    fn rules() -> Vec<Rule<Self>> {
        Vec::new()
    }

    /// Returns the section of the policy settings that the rules of the kind read, if any.
    fn settings() -> Option<Settings> {
        None
    }

    /// Returns true if the CRD does not require `spec`. An object without it is read as one with an empty spec.
    fn is_spec_optional() -> bool {
        false
    }

    /// Returns the defaults that depend on other fields.
    fn dynamic_defaults() -> Vec<DynamicDefault> {
        Vec::new()
    }

    /// Returns the versions other than the validated one. The CRD must list them, too.
    fn additional_versions() -> Vec<VersionMapping> {
        Vec::new()
    }

    /// Returns the sources of the rules in the CRD: pairs of a key and a URL. The key is the id of a CEL rule
    /// or a prefix of a field path. A matching id takes precedence, then the longest matching prefix. Rust
    /// rules have their own `reference`.
    fn rule_references() -> Vec<(String, &'static str)> {
        Vec::new()
    }

    /// Returns additional transition fields, whose last validated values are stored. Fields that a CEL rule compares
    /// with `oldSelf` are included automatically: a scalar that has the rule, or a scalar to which the rule of its
    /// object points with `fieldPath`. So are fields with a dynamic default. Add the fields that Rust transition
    /// rules read and the fields that decide about deletion. Each entry is the dotted path of a scalar. It must never
    /// be a secret.
    fn transition_fields() -> &'static [&'static str] {
        &[]
    }
}
