//! Ruleset that is compiled when it is needed.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crd_validation::conversion::ConversionError;
use crd_validation::json::RawObject;
use json_patch::Patch;
use serde_json::Value;

use crate::crd_match::CrdMatch;
use crate::kind::ValidatedResource;
use crate::request::ValidationRequest;
use crate::result::ValidationResult;
use crate::rule_info::RuleInfo;
use crate::ruleset::{Ruleset, convert};
use crate::settings::Settings;
use crate::validator::Validator;

/// [`Ruleset`] that is compiled for the first object, or for the first question about its rules or its CRD.
///
/// For processes that start often, or that know many kinds and validate objects of a few of them: a compiled kind takes up to
/// several MiB, and its compilation milliseconds.
///
/// # Panics
///
/// The method that needs the ruleset panics if it cannot be compiled. A test of the kind should call [`Ruleset::compile`],
/// which returns the error.
///
/// # Examples
///
/// ```no_run
/// # use lockstep_shared_validation::ValidatedResource;
/// use std::sync::Arc;
///
/// use lockstep_shared_validation::{LazyRuleset, ValidatorRegistry};
///
/// # fn registry<User: ValidatedResource>() -> ValidatorRegistry {
/// ValidatorRegistry::default().register(Arc::new(LazyRuleset::<User>::default()))
/// # }
/// ```
pub struct LazyRuleset<K: ValidatedResource> {
    extension: Option<Arc<dyn Any + Send + Sync>>,
    compiled: OnceLock<Ruleset<K>>,
}

impl<K: ValidatedResource> Default for LazyRuleset<K> {
    fn default() -> Self {
        Self {
            extension: None,
            compiled: OnceLock::new(),
        }
    }
}

impl<K: ValidatedResource> LazyRuleset<K> {
    /// Sets the extension of the ruleset, see [`Ruleset::with_extension`].
    #[must_use]
    pub fn with_extension(mut self, extension: Arc<dyn Any + Send + Sync>) -> Self {
        self.extension = Some(extension);
        self
    }

    fn ruleset(&self) -> &Ruleset<K> {
        self.compiled.get_or_init(|| {
            let ruleset = Ruleset::compile();
            let ruleset = ruleset
                .unwrap_or_else(|error| panic!("cannot compile the rules of {}: {error}", K::KIND));
            match &self.extension {
                Some(extension) => ruleset.with_extension(Arc::clone(extension)),
                None => ruleset,
            }
        })
    }
}

impl<K: ValidatedResource> Validator for LazyRuleset<K> {
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
        self.ruleset().crd()
    }

    fn rules(&self) -> Vec<RuleInfo> {
        self.ruleset().rules()
    }

    fn settings(&self) -> Option<Settings> {
        K::settings()
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        self.ruleset().transition_fields()
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        convert::<K>(object, to)
    }

    fn probe_object(&self, name: &str, namespace: &str) -> Option<Value> {
        self.ruleset().probe_object(name, namespace)
    }

    fn default_patch(&self, request: &ValidationRequest<'_>) -> Patch {
        self.ruleset().default_patch(request)
    }

    fn is_trivially_valid(
        &self,
        object: &RawObject<'_>,
        old: Option<&RawObject<'_>>,
        crd: CrdMatch,
    ) -> bool {
        self.ruleset().is_trivially_valid(object, old, crd)
    }

    fn has_all_defaults(
        &self,
        object: &RawObject<'_>,
        old: Option<&RawObject<'_>>,
        crd: CrdMatch,
    ) -> bool {
        self.ruleset().has_all_defaults(object, old, crd)
    }

    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        self.ruleset().validate(request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::rule::{Rule, Severity};

    /// Number of compilations.
    static COMPILED: AtomicUsize = AtomicUsize::new(0);

    #[derive(Deserialize)]
    struct Thing {
        size: u64,
    }

    impl ValidatedResource for Thing {
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
    fn it_is_compiled_once_when_an_object_is_validated_and_validates_like_the_ruleset() {
        let lazy = LazyRuleset::<Thing>::default().with_extension(Arc::new(5_u64));
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
        assert!(lazy.is_trivially_valid(&small, None, CrdMatch::Unknown));
        assert!(lazy.rules().iter().any(|rule| rule.id == "too-large"));
        assert_eq!(COMPILED.load(Ordering::Relaxed), 1);
    }
}
