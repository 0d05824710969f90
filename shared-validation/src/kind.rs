//! The one trait that a kind implements.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::conversion::VersionMapping;
use crate::defaults::DynamicDefault;
use crate::rule::Rule;
use crate::settings::Settings;

/// A custom resource type and everything demanded of it.
///
/// # Expected flow
///
/// The CRD carries what a schema or CEL can say, [`rules`](Kind::rules) what neither can.
/// [`Ruleset::compile`](crate::Ruleset::compile) makes one judge of both.
pub trait ValidatedResource: DeserializeOwned + Send + Sync + 'static {
    /// The API group, such as `database.example.com`.
    const GROUP: &'static str;
    /// The API version that is judged, such as `v1alpha1`.
    const VERSION: &'static str;
    /// The kind, such as `CloudDatabase`.
    const KIND: &'static str;

    /// The `CustomResourceDefinition`: the one source of the schema.
    fn crd() -> Value;

    /// A valid object of the kind, without metadata. Canaries are made of it.
    fn example() -> Value;

    /// The rules of the Rust layer: what neither the schema nor CEL can say.
    fn rules() -> Vec<Rule<Self>> {
        Vec::new()
    }

    /// What a policy may tell the rules of the kind, beside what a violation does.
    fn settings() -> Option<Settings> {
        None
    }

    /// Defaults that depend on other fields.
    fn dynamic_defaults() -> Vec<DynamicDefault> {
        Vec::new()
    }

    /// The versions beside the one that is judged. The CRD has them too.
    fn served_versions() -> Vec<VersionMapping> {
        Vec::new()
    }

    /// Where the rules of the CRD come from: a page by the id of a CEL rule, or by the beginning of a
    /// field's path, of which the longest that fits counts. Rust rules name their own.
    fn rule_references() -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Fields to remember when an object is accepted, besides those that a CEL rule compares with
    /// `oldSelf` (a scalar that has the rule, or one that the rule of its object points to with `fieldPath`):
    /// what Rust rules about transitions read, and what decides over destruction. Dotted names of scalars; never a
    /// secret.
    fn transition_fields() -> &'static [&'static str] {
        &[]
    }
}
