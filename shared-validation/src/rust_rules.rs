//! Rust layer: evaluates the Rust rules of a kind.

use std::any::Any;
use std::cell::LazyCell;
use std::sync::Arc;

use crd_validation::json::{Tree, as_integer, pointer};
use crd_validation::{FieldError, FieldPath, fingerprint};
use serde_json::Value;

use crate::kind::ValidatedResource;
use crate::layer::{LayerContext, ValidationLayer};
use crate::nesting;
use crate::operation::Operation;
use crate::policy::Action;
use crate::probe;
use crate::report::Report;
use crate::result::Violation;
use crate::rule::{Diagnostics, Layer, Rule, RuleContext, Severity};

/// Validator for the Rust rules of a kind.
pub(crate) struct RustRules<K: ValidatedResource> {
    pub(crate) rules: Vec<Rule<K>>,
    /// If true, objects may contain fields that the CRD does not describe.
    pub(crate) has_free_fields: bool,
    /// Value that the rules of the ruleset share, if any.
    pub(crate) extension: Option<Arc<dyn Any + Send + Sync>>,
}

impl<K: ValidatedResource> RustRules<K> {
    /// Returns true if both objects deserialize and no rule reports a violation. Always false if the kind has
    /// policy settings, because the policy is not available here.
    pub(crate) fn is_trivially_valid(&self, object: &Tree<'_>, old: Option<&Tree<'_>>) -> bool {
        if K::settings().is_some() || self.has_free_fields && nesting::is_violated(object) {
            return false;
        }
        let Ok(object) = K::deserialize(object) else {
            return false;
        };
        let Ok(old) = old.map(K::deserialize).transpose() else {
            return false;
        };
        let operation = match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let context = RuleContext::new(operation, &object, old.as_ref(), None)
            .with_extension(self.extension.as_deref());
        self.rules.iter().all(|rule| run(rule, &context).is_empty())
    }
}

impl<K: ValidatedResource> ValidationLayer for RustRules<K> {
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>) {
        probe::validate(case.object, report);
        if self.has_free_fields {
            nesting::validate(case, report);
        }
        let object = match decode::<K>(case.object) {
            Ok(object) => object,
            // The structural layer has already reported which field has the wrong type.
            Err(_) if report.has_errors() => return,
            Err(error) => {
                let error = FieldError::invalid_hidden(
                    FieldPath::root(),
                    format!("cannot be decoded: {error} [parse-error]"),
                );
                let violation = Violation {
                    rule: "parse-error".to_owned(),
                    layer: Layer::Rust,
                    at: error.path.clone(),
                    error,
                    inputs: None,
                    is_of_related: false,
                };
                // A stored object that does not deserialize must remain editable: an unchanged error must not
                // deny its updates.
                let was_there = case.old.is_some_and(|old| decode::<K>(old).is_err());
                return report.deny_or_ratchet(violation, was_there);
            }
        };
        // If the old object does not deserialize, transition rules have nothing to compare with.
        let read = |value: Option<&Value>| value.and_then(|value| decode::<K>(value).ok());
        let old = read(case.old);
        // Usually `before` is the stored object itself.
        let is_stored = match (case.before, case.old) {
            (Some(before), Some(old)) => std::ptr::eq(before, old),
            _ => false,
        };
        let remembered = if is_stored { None } else { read(case.before) };
        let before = if is_stored { &old } else { &remembered };
        let settings = case.policy.zip(K::settings());
        let settings = settings.and_then(|(policy, own)| policy.settings(own.section));
        let context_of = |object, old| {
            RuleContext::new(case.operation, object, old, settings)
                .with_extension(self.extension.as_deref())
        };
        let context = context_of(&object, before.as_ref()).with_related(case.related);
        // Input for the rules on the old object alone, to find its own errors. It needs neither the object
        // before it nor related objects: conflicts with related objects are never ratcheted.
        let old = old.as_ref();
        let old = old.map(|old| context_of(old, None));
        let alone = LazyCell::new(|| context_of(&object, before.as_ref()));
        for rule in &self.rules {
            let found = run(rule, &context);
            let is_among_others = context.has_read_related();
            if found.is_empty() {
                continue;
            }
            let unchanged = case.old.is_some_and(|old| {
                rule.fields
                    .iter()
                    .all(|field| pointer::get(old, field) == pointer::get(case.object, field))
            });
            let ratcheted = match &old {
                Some(old) if unchanged => run(rule, old),
                _ => Vec::new(),
            };
            let read = rule
                .fields
                .iter()
                .map(|field| pointer::get(case.object, field));
            let inputs = fingerprint(read.map(|value| value.unwrap_or(&Value::Null)));
            // A conflict with related objects lasts only as long as these objects exist, so it is never
            // ratcheted.
            let found_alone = is_among_others.then(|| run(rule, &alone));
            for error in found {
                let is_of_others = found_alone
                    .as_ref()
                    .is_some_and(|found_alone| !found_alone.contains(&error));
                let was_there = !is_of_others
                    && ratcheted
                        .iter()
                        .any(|e| e.error_type == error.error_type && e.path == error.path);
                let error = FieldError {
                    detail: format!("{} [{}]", error.detail, rule.id),
                    ..error
                };
                let violation = Violation {
                    rule: rule.id.to_owned(),
                    layer: Layer::Rust,
                    at: error.path.clone(),
                    error,
                    inputs: (!is_of_others).then_some(inputs),
                    is_of_related: is_of_others,
                };
                let default_action = match rule.severity {
                    Severity::Error => Action::Deny,
                    Severity::Warning => Action::Warn,
                };
                let policy = case
                    .policy
                    .and_then(|policy| policy.action(K::KIND, rule.id));
                let action = policy.unwrap_or(default_action);
                if action != Action::Deny {
                    // If a policy denies this later, the object was already stored with the violation.
                    report.record_ratcheted(&violation);
                }
                match action {
                    Action::Deny => report.deny_or_ratchet(violation, was_there),
                    Action::Warn => report.warn(violation),
                    Action::Audit => report.audit(violation),
                }
            }
        }
    }
}

/// Deserializes an object as its kind.
///
/// This accepts more than the `Deserialize` implementation of the kind, as the API server does. A status that
/// does not deserialize is ignored, because the controller writes it and not the user. A number such as
/// `5432.0` is accepted as an integer. A missing `spec` is read as an empty one if the CRD does not require it.
pub fn decode<K: ValidatedResource>(object: &Value) -> Result<K, serde_json::Error> {
    K::deserialize(object).or_else(|error| {
        let mut forgiving = object.clone();
        whole_floats_to_integers(&mut forgiving);
        if K::is_spec_optional()
            && let Some(fields) = forgiving.as_object_mut()
        {
            let empty = || Value::Object(serde_json::Map::new());
            fields.entry("spec").or_insert_with(empty);
        }
        let with_status = K::deserialize(&forgiving);
        if let (Err(_), Some(fields)) = (&with_status, forgiving.as_object_mut()) {
            fields.remove("status");
            return K::deserialize(&forgiving).map_err(|_| error);
        }
        with_status
    })
}

fn whole_floats_to_integers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = as_integer(number).and_then(|n| i64::try_from(n).ok()) {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_floats_to_integers),
        Value::Object(fields) => fields.values_mut().for_each(whole_floats_to_integers),
        _ => {}
    }
}

fn run<K>(rule: &Rule<K>, context: &RuleContext<'_, K>) -> Vec<FieldError> {
    let mut diagnostics = Diagnostics::default();
    (rule.validate)(context, &mut diagnostics);
    diagnostics.into_errors()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::request::ValidationRequest;
    use crate::ruleset::Ruleset;
    use crate::validator::Validator;

    thread_local! {
        /// Number of calls of each of the two rules.
        static EVALUATIONS: [Cell<u32>; 2] = const { [Cell::new(0), Cell::new(0)] };
    }

    fn count_evaluation(rule: usize) {
        EVALUATIONS.with(|evaluations| evaluations[rule].set(evaluations[rule].get() + 1));
    }

    #[derive(Deserialize)]
    struct Neighbour {}

    impl ValidatedResource for Neighbour {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Neighbour";

        fn crd() -> Value {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "neighbours.example.com"},
                "spec": {
                    "group": Self::GROUP,
                    "names": {"kind": Self::KIND, "plural": "neighbours"},
                    "scope": "Namespaced",
                    "versions": [{
                        "name": Self::VERSION, "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }],
                },
            })
        }

        fn example() -> Value {
            json!({})
        }

        fn rules() -> Vec<Rule<Self>> {
            let rule = |id, check| Rule {
                id,
                description: "The object must not exist.",
                severity: Severity::Error,
                reference: "",
                fields: &[],
                validate: check,
            };
            vec![
                rule("alone", |_, diagnostics| {
                    count_evaluation(0);
                    diagnostics.invalid("", "", "is wrong");
                }),
                rule("among", |context, diagnostics| {
                    count_evaluation(1);
                    if let Some(others) = context.related() {
                        diagnostics.invalid("", others.clone(), "is taken");
                    }
                }),
            ]
        }
    }

    #[test]
    fn only_a_rule_that_read_related_objects_runs_a_second_time_without_them() {
        let rules = Ruleset::<Neighbour>::compile().expect("the ruleset compiles");
        let metadata = json!({"name": "a", "namespace": "n"});
        let object =
            json!({"apiVersion": "example.com/v1", "kind": "Neighbour", "metadata": metadata});
        let others = json!("it");
        let evaluations = |request: &ValidationRequest<'_>| {
            EVALUATIONS.with(|evaluations| evaluations.iter().for_each(|count| count.set(0)));
            let errors = rules.validate(request).errors.len();
            let evaluations =
                EVALUATIONS.with(|evaluations| [evaluations[0].get(), evaluations[1].get()]);
            (errors, evaluations)
        };
        let request = || ValidationRequest::create(&object);
        assert_eq!(evaluations(&request()), (1, [1, 1]));
        assert_eq!(evaluations(&request().with_related(&others)), (2, [1, 2]));
    }

    #[derive(Deserialize)]
    struct Extended {}

    impl ValidatedResource for Extended {
        const GROUP: &'static str = Neighbour::GROUP;
        const VERSION: &'static str = Neighbour::VERSION;
        const KIND: &'static str = Neighbour::KIND;

        fn crd() -> Value {
            Neighbour::crd()
        }

        fn example() -> Value {
            Neighbour::example()
        }

        fn rules() -> Vec<Rule<Self>> {
            vec![Rule {
                id: "extension",
                description: "The ruleset has no extension.",
                severity: Severity::Error,
                reference: "",
                fields: &["metadata.name"],
                validate: |context, diagnostics| {
                    if let Some(text) = context.extension::<String>() {
                        diagnostics.invalid("", text.clone(), "is the extension");
                    }
                },
            }]
        }
    }

    #[test]
    fn a_rule_reads_the_extension_of_its_ruleset_by_type() {
        let errors = |ruleset: Ruleset<Extended>| {
            let metadata = json!({"name": "a", "namespace": "n"});
            let object =
                json!({"apiVersion": "example.com/v1", "kind": "Neighbour", "metadata": metadata});
            let result = ruleset.validate(&ValidationRequest::create(&object));
            let updated = ruleset.validate(&ValidationRequest::update(&object, &object));
            // The rule also reads it when it runs on the old object.
            assert_eq!(updated.warnings.len(), result.errors.len());
            result.errors.len()
        };
        let ruleset = || Ruleset::<Extended>::compile().expect("the ruleset compiles");
        assert_eq!(errors(ruleset()), 0);
        assert_eq!(errors(ruleset().with_extension(Arc::new(1))), 0);
        let extension = Arc::new("shared".to_owned());
        assert_eq!(errors(ruleset().with_extension(extension)), 1);
    }
}
