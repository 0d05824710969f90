//! Compiled ruleset of one kind.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crd_validation::conversion::{ConversionError, Versions};
use crd_validation::json::RawObject;
use crd_validation::{CompileError, CrdValidator};
use json_patch::Patch;
use serde_json::Value;

use crate::crd_match::CrdMatch;
use crate::defaults::DynamicDefault;
use crate::fast_path;
use crate::kind::ValidatedResource;
use crate::last_validated::MAX_FIELDS;
use crate::nesting;
use crate::policy::Policy;
use crate::probe;
use crate::request::ValidationRequest;
use crate::result::ValidationResult;
use crate::rule_info::RuleInfo;
use crate::rust_rules::RustRules;
use crate::settings::Settings;
use crate::validation::Validation;

pub(crate) use crate::validator::Validator;

/// Everything compiled for one kind: structural schema, CEL rules, Rust rules and defaults.
///
/// # Examples
///
/// ```
/// use serde::Deserialize;
/// use serde_json::{Value, json};
/// use lockstep_shared_validation::{
///     Rule, Ruleset, Severity, ValidatedResource, ValidationRequest, Validator,
/// };
///
/// #[derive(Deserialize)]
/// struct User {
///     spec: UserSpec,
/// }
///
/// #[derive(Deserialize)]
/// struct UserSpec {
///     name: String,
/// }
///
/// impl ValidatedResource for User {
///     const GROUP: &'static str = "example.com";
///     const VERSION: &'static str = "v1";
///     const KIND: &'static str = "User";
///
///     fn crd() -> Value {
///         let spec = json!({
///             "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
///         });
///         let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
///         json!({"spec": {
///             "group": "example.com", "scope": "Namespaced", "names": {"kind": "User", "plural": "users"},
///             "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
///         }})
///     }
///
///     fn example() -> Value {
///         json!({"spec": {"name": "ada"}})
///     }
///
///     fn rules() -> Vec<Rule<Self>> {
///         vec![Rule {
///             id: "reserved-name",
///             description: "The name must not be `admin`.",
///             severity: Severity::Error,
///             reference: "https://example.com/reserved-names",
///             fields: &["spec.name"],
///             validate: |context, diagnostics| {
///                 if context.object.spec.name == "admin" {
///                     diagnostics.invalid("spec.name", "admin", "is reserved");
///                 }
///             },
///         }]
///     }
/// }
///
/// let ruleset = Ruleset::<User>::compile()?;
/// let user = json!({"spec": {"name": "admin"}});
/// let result = ruleset.validate(&ValidationRequest::create(&user));
/// assert_eq!(
///     result.message(),
///     r#"spec.name: Invalid value: "admin": is reserved [reserved-name]"#
/// );
/// # Ok::<(), lockstep_shared_validation::CompileError>(())
/// ```
pub struct Ruleset<K: ValidatedResource> {
    compiled: OnceLock<Result<Compiled<K>, CompileError>>,
    /// Value that the Rust rules get once they are compiled.
    extension: Option<Extension>,
}

type Extension = Arc<dyn Any + Send + Sync>;

struct Compiled<K: ValidatedResource> {
    resource: CrdValidator,
    dynamic_defaults: Vec<DynamicDefault>,
    transition_fields: BTreeSet<String>,
    typed: RustRules<K>,
    catalogue: Vec<RuleInfo>,
}

impl<K: ValidatedResource> Ruleset<K> {
    /// Compiles the ruleset of a kind. Call this once, at startup.
    ///
    /// # Errors
    ///
    /// If the schema or a CEL rule uses something that the API server would evaluate differently, or if a rule in Rust has
    /// the id of another rule: metrics, policies and test cases could not tell them apart.
    pub fn compile() -> Result<Self, CompileError> {
        Ok(Self {
            compiled: Ok(Compiled::new()?).into(),
            extension: None,
        })
    }

    /// Returns a ruleset that is compiled for the first object, or for the first question about its rules or its CRD.
    ///
    /// For a process that knows many kinds and validates objects of a few of them: a compiled kind takes up to several MiB, and
    /// its compilation milliseconds.
    ///
    /// # Panics
    ///
    /// Each use of a ruleset that cannot be compiled panics. [`Validator::ensure_compiled`] returns the error, and so does
    /// [`compile`](Self::compile), which a test of the kind should call.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lockstep_shared_validation::ValidatedResource;
    /// use std::sync::Arc;
    ///
    /// use lockstep_shared_validation::{Ruleset, ValidatorRegistry};
    ///
    /// # fn registry<User: ValidatedResource>() -> ValidatorRegistry {
    /// ValidatorRegistry::default().register(Arc::new(Ruleset::<User>::lazy()))
    /// # }
    /// ```
    #[must_use]
    pub fn lazy() -> Self {
        Self {
            compiled: OnceLock::new(),
            extension: None,
        }
    }

    /// Sets a value that the Rust rules read with [`RuleContext::extension`](crate::RuleContext::extension): what
    /// they need besides the object, such as a cache. It must not change the result of a validation.
    #[must_use]
    pub fn with_extension(mut self, extension: Extension) -> Self {
        if let Some(Ok(compiled)) = self.compiled.get_mut() {
            compiled.typed.extension = Some(Arc::clone(&extension));
        }
        self.extension = Some(extension);
        self
    }

    fn try_compiled(&self) -> Result<&Compiled<K>, &CompileError> {
        let compiled = self.compiled.get_or_init(|| {
            let mut compiled = Compiled::new()?;
            compiled.typed.extension.clone_from(&self.extension);
            Ok(compiled)
        });
        compiled.as_ref()
    }

    fn compiled(&self) -> &Compiled<K> {
        self.try_compiled()
            .unwrap_or_else(|error| panic!("cannot compile the rules of {}: {error}", K::KIND))
    }
}

impl<K: ValidatedResource> Compiled<K> {
    fn new() -> Result<Self, CompileError> {
        let crd = K::crd();
        let resource = CrdValidator::compile(&crd, K::VERSION)?;
        if resource.has_root_rules() {
            // Ratcheting applies only while the value of a node is unchanged. A metadata change changes the
            // root, so an old error of a root rule would block the removal of a finalizer.
            return Err(CompileError::Schema {
                at: "the root".to_owned(),
                problem: "a CEL rule at the root of an object is not allowed; attach it to a field"
                    .to_owned(),
            });
        }
        for version in K::additional_versions() {
            let problems = version.problems(&crd);
            if !problems.is_empty() {
                return Err(CompileError::Schema {
                    at: format!("the mapping of {}", version.name),
                    problem: problems.join("; "),
                });
            }
            // The API server refuses the whole CRD if one version is invalid.
            CrdValidator::compile(&crd, version.name)?;
        }
        let mut transition_fields: BTreeSet<String> = K::transition_fields()
            .iter()
            .map(|s| (*s).to_owned())
            .collect();
        // A field with a dynamic default is a transition field: an update that omits it must keep its
        // value, and transition rules must notice each change of it.
        let dynamic_defaults = K::dynamic_defaults();
        transition_fields.extend(
            dynamic_defaults
                .iter()
                .map(|default| default.field.to_owned()),
        );
        transition_fields.extend(resource.transition_fields());
        if transition_fields.len() > MAX_FIELDS {
            return Err(CompileError::Schema {
                at: "the transition fields".to_owned(),
                problem: format!(
                    "{} fields are too many, at most {MAX_FIELDS} last validated values are stored: {}",
                    transition_fields.len(),
                    transition_fields
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            });
        }
        let sources = K::rule_references();
        let declared = resource.rules().into_iter();
        let mut catalogue: Vec<_> = declared
            .map(|rule| RuleInfo::of_crd(rule, &sources))
            .collect();
        let rules = K::rules();
        catalogue.push(probe::rule_info());
        let has_free_fields = nesting::applies_to(&crd);
        if has_free_fields {
            catalogue.push(nesting::rule_info());
        }
        for rule in &rules {
            if catalogue.iter().any(|other| other.id == rule.id) {
                return Err(duplicate_rule(rule.id));
            }
            catalogue.push(RuleInfo::of_rust(rule));
        }
        Ok(Self {
            resource,
            dynamic_defaults,
            transition_fields,
            typed: RustRules {
                rules,
                has_free_fields,
                extension: None,
            },
            catalogue,
        })
    }
}

/// Returns the error for a rule in Rust with the id of another rule.
fn duplicate_rule(id: &str) -> CompileError {
    CompileError::Schema {
        at: "the rules".to_owned(),
        problem: format!("two rules have the id `{id}`; give each its own"),
    }
}

impl<K: ValidatedResource> Compiled<K> {
    fn validation(&self) -> Validation<'_> {
        Validation {
            crd: &self.resource,
            dynamic_defaults: &self.dynamic_defaults,
            transition_fields: &self.transition_fields,
            rust_rules: Some(&self.typed),
        }
    }
}

impl<K: ValidatedResource> Validator for Ruleset<K> {
    fn group(&self) -> &str {
        K::GROUP
    }

    fn version(&self) -> &str {
        K::VERSION
    }

    fn kind(&self) -> &str {
        K::KIND
    }

    fn crd(&self) -> &Value {
        self.compiled().resource.crd()
    }

    fn rules(&self) -> Vec<RuleInfo> {
        self.compiled().catalogue.clone()
    }

    fn settings(&self) -> Option<Settings> {
        K::settings()
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        &self.compiled().transition_fields
    }

    fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }

    fn ensure_compiled(&self) -> Result<(), &CompileError> {
        self.try_compiled().map(drop)
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let versions = Versions {
            group: K::GROUP,
            kind: K::KIND,
            storage_version: K::VERSION,
            others: K::additional_versions(),
        };
        versions.convert(object, to)
    }

    fn probe_object(&self, name: &str, namespace: &str) -> Option<Value> {
        let mut example = K::example();
        example["apiVersion"] = format!("{}/{}", K::GROUP, K::VERSION).into();
        example["kind"] = K::KIND.into();
        let namespace = self
            .compiled()
            .resource
            .is_namespaced()
            .then_some(namespace);
        Some(probe::probe_object(example, name, namespace))
    }

    fn default_patch(&self, request: &ValidationRequest<'_>) -> Patch {
        self.compiled().validation().default_patch(request)
    }

    fn is_trivially_valid(
        &self,
        object: &RawObject<'_>,
        old: Option<&RawObject<'_>>,
        crd: CrdMatch,
        policy: &Policy,
    ) -> bool {
        let (object, old) = (object.tree(), old.map(RawObject::tree));
        let compiled = self.compiled();
        let defaults = &compiled.dynamic_defaults;
        fast_path::is_complete(object, old, defaults)
            && old.is_none_or(|old| {
                fast_path::is_as_accepted(old, defaults, &compiled.transition_fields)
            })
            && (crd == CrdMatch::Same || compiled.resource.is_trivially_valid(object, old))
            && compiled.typed.is_trivially_valid(object, old, policy)
    }

    fn has_all_defaults(
        &self,
        object: &RawObject<'_>,
        old: Option<&RawObject<'_>>,
        crd: CrdMatch,
    ) -> bool {
        let old = old.map(RawObject::tree);
        let compiled = self.compiled();
        fast_path::is_complete(object.tree(), old, &compiled.dynamic_defaults)
            && (crd == CrdMatch::Same || compiled.resource.has_all_defaults(object.tree()))
    }

    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        self.compiled().validation().validate(request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::rule::{Rule, Severity};

    fn rule<K>(id: &'static str) -> Rule<K> {
        Rule {
            id,
            description: "Never broken.",
            severity: Severity::Error,
            reference: "https://example.com",
            fields: &["spec.size"],
            validate: |_, _| {},
        }
    }

    /// Declares a kind with a CEL rule `from-cel` and these rules in Rust.
    macro_rules! kind {
        ($name:ident, $($id:literal),+) => {
            #[derive(Deserialize)]
            struct $name {}

            impl ValidatedResource for $name {
                const GROUP: &'static str = "example.com";
                const VERSION: &'static str = "v1";
                const KIND: &'static str = "Thing";

                fn crd() -> Value {
                    let rule = json!({"rule": "self > 0", "message": "must be positive [from-cel]"});
                    let size = json!({"type": "integer", "x-kubernetes-validations": [rule]});
                    let spec = json!({"type": "object", "properties": {"size": size}});
                    let schema = json!({"type": "object", "properties": {"spec": spec}});
                    json!({"spec": {
                        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
                    }})
                }

                fn example() -> Value {
                    json!({"spec": {"size": 1}})
                }

                fn rules() -> Vec<Rule<Self>> {
                    vec![$(rule($id)),+]
                }
            }
        };
    }

    kind!(Distinct, "first", "second");
    kind!(TwiceInRust, "first", "second", "first");
    kind!(InCelAndRust, "from-cel");

    #[test]
    fn each_rule_in_rust_has_an_id_of_its_own() {
        let error = |compiled: Option<CompileError>| compiled.map(|error| error.to_string());
        assert_eq!(error(Ruleset::<Distinct>::compile().err()), None);
        let twice = |id: &str| {
            Some(format!(
                "schema at the rules: two rules have the id `{id}`; give each its own"
            ))
        };
        let compiled = Ruleset::<TwiceInRust>::compile().err();
        assert_eq!(error(compiled), twice("first"));
        let compiled = Ruleset::<InCelAndRust>::compile().err();
        assert_eq!(error(compiled), twice("from-cel"));
        let lazy = Ruleset::<InCelAndRust>::lazy();
        let told = lazy.ensure_compiled().map_err(ToString::to_string);
        assert_eq!(told.err(), twice("from-cel"));
    }

    /// Number of compilations.
    static COMPILED: AtomicUsize = AtomicUsize::new(0);

    #[derive(Deserialize)]
    struct Sized {
        size: u64,
    }

    impl ValidatedResource for Sized {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Thing";

        fn crd() -> Value {
            COMPILED.fetch_add(1, Ordering::Relaxed);
            let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}});
            json!({"spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
            }})
        }

        fn example() -> Value {
            json!({"size": 1})
        }

        fn rules() -> Vec<Rule<Self>> {
            vec![Rule {
                id: "too-large",
                description: "The size must not exceed the extension.",
                severity: Severity::Error,
                reference: "https://example.com",
                fields: &["size"],
                validate: |context, diagnostics| {
                    let most = context.extension::<u64>().expect("the extension");
                    if context.object.size > *most {
                        diagnostics.invalid("size", context.object.size, "is too large");
                    }
                },
            }]
        }
    }

    #[test]
    fn a_lazy_ruleset_is_compiled_once_for_the_first_object() {
        let lazy = Ruleset::<Sized>::lazy().with_extension(Arc::new(5_u64));
        assert_eq!((lazy.kind(), lazy.version()), ("Thing", "v1"));
        assert!(lazy.settings().is_none());
        let stored = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
        lazy.convert(&stored, "example.com/v1")
            .expect("the object has this version");
        assert_eq!(COMPILED.load(Ordering::Relaxed), 0);
        let message = |size: u64| {
            let object = json!({"size": size});
            lazy.validate(&ValidationRequest::create(&object)).message()
        };
        assert_eq!(message(5), "");
        assert!(message(0).contains("greater than or equal to 1"));
        assert!(message(6).contains("[too-large]"));
        let small = serde_json::from_str(r#"{"size": 5}"#).expect("an object");
        assert!(lazy.is_trivially_valid(&small, None, CrdMatch::Unknown, &Policy::default()));
        assert!(lazy.rules().iter().any(|rule| rule.id == "too-large"));
        assert_eq!(COMPILED.load(Ordering::Relaxed), 1);
    }
}
