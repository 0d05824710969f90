//! Rust layer: evaluates the Rust rules of a kind.

use std::any::Any;
use std::cell::LazyCell;
use std::sync::Arc;

use crd_validation::json::{Tree, as_integer, pointer};
use crd_validation::{FieldError, FieldPath, fingerprint};
use serde_json::Value;

use crate::found_errors::{Fingerprints, FoundErrors, Identity, KnownErrors, Ratcheting};
use crate::kind::ValidatedResource;
use crate::layer::{LayerContext, ValidationLayer};
use crate::nesting;
use crate::operation::Operation;
use crate::policy::{Action, Policy};
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
    /// Returns true if both objects deserialize and no rule reports a violation.
    pub(crate) fn is_trivially_valid(
        &self,
        object: &Tree<'_>,
        old: Option<&Tree<'_>>,
        policy: &Policy,
    ) -> bool {
        let own = K::settings();
        // Rules on free fields that settings restrict can be expensive, and would run twice for an object that is invalid.
        if self.has_free_fields && (own.is_some() || nesting::is_violated(object)) {
            return false;
        }
        let settings = own.and_then(|own| policy.settings(own.section));
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
        let context = RuleContext::new(operation, &object, old.as_ref(), settings)
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
        let known = report.known();
        let known = LazyCell::new(|| known.cloned().map(Arc::new));
        for rule in &self.rules {
            let found = run(rule, &context);
            let is_among_others = context.has_read_related();
            if found.is_empty() {
                continue;
            }
            let read = || {
                rule.fields
                    .iter()
                    .map(|field| pointer::get(case.object, field))
            };
            let unchanged = case.old.is_some_and(|old| {
                let mut fields = rule.fields.iter().zip(read());
                fields.all(|(field, value)| pointer::get(old, field) == value)
            });
            let inputs = fingerprint(read().map(|value| value.unwrap_or(&Value::Null)));
            let known = KnownErrors {
                old: old
                    .as_ref()
                    .filter(|_| unchanged)
                    .and_then(|old| fingerprints(rule, old, Identity::TypeAndPath)),
                alone: is_among_others
                    .then(|| fingerprints(rule, &alone, Identity::Whole))
                    .flatten(),
                ratcheting: Some(Ratcheting {
                    rule: rule.id,
                    inputs,
                    known: LazyCell::force(&known).clone(),
                }),
            };
            let errors = found_errors(rule, &context, found, known);
            let action = case
                .policy
                .and_then(|policy| policy.action(K::KIND, rule.id));
            let violations = RuleViolations {
                rule: rule.id,
                severity: rule.severity,
                action: action.unwrap_or(match rule.severity {
                    Severity::Error => Action::Deny,
                    Severity::Warning => Action::Warn,
                }),
                inputs,
            };
            violations.report(errors, report);
        }
    }
}

/// Violations of one rule.
struct RuleViolations {
    rule: &'static str,
    severity: Severity,
    action: Action,
    /// Fingerprint of the fields that the rule reads.
    inputs: u64,
}

impl RuleViolations {
    /// Adds errors to the report, as the policy says.
    fn report(&self, mut errors: FoundErrors, report: &mut Report<'_>) {
        let new = std::mem::take(&mut errors.new);
        let new = new.map(|error| self.violation(&errors, error));
        let ratcheted = std::mem::take(&mut errors.ratcheted);
        let ratcheted = ratcheted.map(|error| self.violation(&errors, error));
        match self.action {
            Action::Deny => {
                report.deny_all(new);
                report.ratchet_all(ratcheted);
            }
            // If a policy denies this later, the object was already stored with the violation.
            Action::Warn => {
                report.ratchet_all(new);
                report.ratchet_all(ratcheted);
            }
            Action::Audit => {
                report.audit_all(new);
                report.audit_all(ratcheted);
            }
        }
    }

    fn violation(&self, errors: &FoundErrors, error: FieldError) -> Violation {
        let is_of_related = errors.is_of_related(&error);
        // A policy that denies says that the value is invalid.
        let error = match (self.severity, self.action) {
            (Severity::Warning, Action::Warn | Action::Audit) => error.into_warning(),
            _ => error,
        };
        let error = FieldError {
            detail: format!("{} [{}]", error.detail, self.rule),
            ..error
        };
        Violation {
            rule: self.rule.to_owned(),
            layer: Layer::Rust,
            at: error.path.clone(),
            error,
            inputs: (!is_of_related).then_some(self.inputs),
            is_of_related,
        }
    }
}

/// Separates the errors of a rule from those that are ratcheted. If not all of them were kept, the rule runs again: the
/// errors that deny may be among the others.
fn found_errors<K>(
    rule: &Rule<K>,
    context: &RuleContext<'_, K>,
    found: FoundErrors,
    known: KnownErrors,
) -> FoundErrors {
    let mut errors = FoundErrors::new(known);
    if found.new.has_more() {
        let mut diagnostics = Diagnostics::new(errors);
        (rule.validate)(context, &mut diagnostics);
        // The next rule has not read related objects yet.
        let _ = context.has_read_related();
        return diagnostics.into_found();
    }
    let (found, _) = found.new.into_sorted();
    for error in found {
        errors.add(error);
    }
    errors
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

fn run<K>(rule: &Rule<K>, context: &RuleContext<'_, K>) -> FoundErrors {
    let mut diagnostics = Diagnostics::default();
    (rule.validate)(context, &mut diagnostics);
    diagnostics.into_found()
}

/// Returns the fingerprints of all errors of a rule.
fn fingerprints<K>(
    rule: &Rule<K>,
    context: &RuleContext<'_, K>,
    identity: Identity,
) -> Option<Fingerprints> {
    let mut diagnostics = Diagnostics::of_fingerprints(Fingerprints::new(identity));
    (rule.validate)(context, &mut diagnostics);
    diagnostics.into_fingerprints()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crd_validation::MAX_REPORTED;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::last_validated::LastValidated;
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

    #[derive(Deserialize)]
    struct Named {
        spec: Names,
    }

    #[derive(Deserialize)]
    struct Names {
        names: Vec<String>,
        #[serde(default)]
        others: Vec<String>,
    }

    impl ValidatedResource for Named {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Named";

        fn crd() -> Value {
            let short = json!({"type": "string", "maxLength": 20});
            let names = json!({"type": "array", "items": short});
            let tags = json!({"type": "object", "additionalProperties": {"type": "integer"}});
            let properties = json!({"names": names, "others": names, "tags": tags});
            let spec = json!({"type": "object", "properties": properties});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            json!({"spec": {
                "group": Self::GROUP, "scope": "Namespaced",
                "names": {"kind": Self::KIND, "plural": "nameds"},
                "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
            }})
        }

        fn example() -> Value {
            json!({"spec": {"names": []}})
        }

        fn rules() -> Vec<Rule<Self>> {
            let rule = |id, severity, fields, check| Rule::<Self> {
                id,
                description: "A name must not be `bad`.",
                severity,
                reference: "",
                fields,
                validate: check,
            };
            vec![
                rule(
                    "names",
                    Severity::Error,
                    &["spec.others"],
                    |context, diagnostics| {
                        // A rule that compares with the old object: what it reports is not only of its fields.
                        let spec = &context.object.spec;
                        let lists = [("names", &spec.names), ("others", &spec.others)];
                        for (field, names) in lists {
                            for (index, name) in names.iter().enumerate() {
                                if name.starts_with("bad") {
                                    let path = format!("spec.{field}[{index}]");
                                    diagnostics.invalid(path, name.as_str(), "is bad");
                                } else if name.starts_with("key") {
                                    let path = format!("spec.tags[{name}]");
                                    diagnostics.invalid(path, "", "is a key");
                                }
                            }
                        }
                    },
                ),
                rule(
                    "advice",
                    Severity::Warning,
                    &["spec.names"],
                    |context, diagnostics| {
                        for (index, name) in context.object.spec.names.iter().enumerate() {
                            if name.starts_with("odd") {
                                let path = format!("spec.names[{index}]");
                                diagnostics.invalid(path, name.as_str(), "is odd");
                            }
                        }
                    },
                ),
            ]
        }
    }

    fn named(names: &[(&str, usize)], others: &[(&str, usize)]) -> Value {
        let list = |parts: &[(&str, usize)]| -> Vec<String> {
            let parts = parts.iter();
            parts
                .flat_map(|(name, count)| vec![(*name).to_owned(); *count])
                .collect()
        };
        json!({
            "apiVersion": "example.com/v1", "kind": "Named", "metadata": {"name": "a", "namespace": "n"},
            "spec": {"names": list(names), "others": list(others)},
        })
    }

    #[test]
    fn the_validity_of_an_object_does_not_depend_on_the_maximum_number_of_reported_errors() {
        let rules = Ruleset::<Named>::compile().expect("the ruleset compiles");
        // 150 ratcheted errors of a rule, and one of the same rule that is not.
        let old = named(&[("ok", 1)], &[("bad", 150)]);
        let unchanged = rules.validate(&ValidationRequest::update(&old, &old));
        assert!(unchanged.is_valid());
        assert_eq!(unchanged.warnings.len(), MAX_REPORTED);
        assert!(unchanged.has_more_warnings);
        let new = named(&[("bad", 1)], &[("bad", 150)]);
        let result = rules.validate(&ValidationRequest::update(&new, &old));
        let paths: Vec<_> = result
            .errors
            .iter()
            .map(|error| error.at.as_str())
            .collect();
        assert_eq!(paths, ["spec.names[0]"]);
        assert!(!result.has_more_errors && result.has_more_warnings);
        // Its path comes last: the 150 others are found before.
        let last = named(&[], &[("bad", 150), ("bad", 1)]);
        let old = named(&[], &[("bad", 150), ("ok", 1)]);
        let last = rules.validate(&ValidationRequest::update(&last, &old));
        assert!(!last.is_valid());
        // 150 errors of a rule that only warns, and one that denies.
        let new = named(&[("odd", 150), ("bad", 1)], &[]);
        let result = rules.validate(&ValidationRequest::create(&new));
        assert_eq!(result.errors.len(), 1);
        assert_eq!(result.warnings.len(), MAX_REPORTED);
        // 150 errors of the schema that are ratcheted, and one that is not.
        let long = "x".repeat(30);
        let old = named(&[], &[(&long, 150)]);
        let new = named(&[(&long, 1)], &[(&long, 150)]);
        let result = rules.validate(&ValidationRequest::update(&new, &old));
        assert_eq!(
            result.message(),
            "spec.names[0]: Too long: may not be more than 20 bytes"
        );
        // A policy decides about all errors of a rule.
        let file = json!({"rules": {"Named": {"names": "audit"}}});
        let validators = crate::ValidatorRegistry::default().register(Arc::new(rules));
        let policy = crate::Policy::read(&file, &validators).expect("a policy");
        let rules = Ruleset::<Named>::compile().expect("the ruleset compiles");
        let new = named(&[("bad", 150)], &[]);
        let result = rules.validate(&ValidationRequest::create(&new).with_policy(&policy));
        assert!(result.is_valid() && result.warnings.is_empty());
        assert_eq!(result.audit_violations.len(), MAX_REPORTED);
        assert!(result.has_more_audit_violations);
    }

    /// Returns what the controller stores of an object that was valid before a rule became stricter.
    fn validated_before(rules: &Ruleset<Named>, object: &Value) -> LastValidated {
        let result = rules.validate(&ValidationRequest::update(object, object));
        assert!(result.is_valid());
        let mut object = object.clone();
        object["metadata"]["generation"] = json!(1);
        let last_validated = LastValidated::from_object(&object, rules.transition_fields());
        let last_validated = last_validated.with_ratcheted(&result.ratcheted);
        let stored = json!({"status": {"lastValidated": last_validated}});
        LastValidated::from_status_of(&stored).expect("what was stored")
    }

    #[test]
    fn the_controller_ratchets_any_number_of_errors_as_the_webhook_does() {
        let rules = Ruleset::<Named>::compile().expect("the ruleset compiles");
        // Each name violates the schema and a rule.
        let long = format!("bad{}", "x".repeat(30));
        for count in [1, 40, 150, 2_000, 10_000] {
            let old = named(&[], &[(&long, count)]);
            let last_validated = validated_before(&rules, &old);
            let errors = |new: &Value| {
                let in_webhook = ValidationRequest::update(new, &old);
                let in_controller = ValidationRequest::create(new);
                [in_webhook, in_controller].map(|request| {
                    let request = request.with_last_validated(Some(&last_validated));
                    let result = rules.validate(&request);
                    assert_eq!(result.warnings.len(), (2 * count).min(MAX_REPORTED));
                    result.message()
                })
            };
            let unrelated = named(&[("ok", 1)], &[(&long, count)]);
            assert_eq!(errors(&unrelated), ["", ""], "{count}");
            let of_schema = named(&[(&"x".repeat(30), 1)], &[(&long, count)]);
            let expected = "spec.names[0]: Too long: may not be more than 20 bytes";
            assert_eq!(errors(&of_schema), [expected; 2], "{count}");
            let of_rule = named(&[("bad", 1)], &[(&long, count)]);
            let expected = "spec.names[0]: Invalid value: \"bad\": is bad [names]";
            assert_eq!(errors(&of_rule), [expected; 2], "{count}");
        }
    }

    #[test]
    fn violations_that_never_denied_do_not_take_the_place_of_ratcheted_errors() {
        let rules = Ruleset::<Named>::compile().expect("the ruleset compiles");
        let old = named(&[("odd", 150)], &[("bad", 50)]);
        let last_validated = validated_before(&rules, &old);
        assert!(
            last_validated.ratcheted.listed[..]
                .iter()
                .all(|known| known.rule == "advice")
        );
        let new = named(&[("odd", 150), ("ok", 1)], &[("bad", 50)]);
        let request = ValidationRequest::create(&new).with_last_validated(Some(&last_validated));
        assert_eq!(rules.validate(&request).message(), "");
    }

    #[test]
    fn up_to_the_maximum_errors_are_complete_and_beyond_the_message_ends_with_the_same_words() {
        let rules = Ruleset::<Named>::compile().expect("the ruleset compiles");
        let message = |count| {
            let object = named(&[("bad", count)], &[]);
            let result = rules.validate(&ValidationRequest::create(&object));
            (
                result.errors.len(),
                result.has_more_errors,
                result.message(),
            )
        };
        let (count, has_more, whole) = message(MAX_REPORTED);
        assert_eq!((count, has_more), (MAX_REPORTED, false));
        assert!(whole.ends_with("is bad [names]]"), "{whole}");
        let (count, has_more, cut) = message(MAX_REPORTED + 1);
        assert_eq!((count, has_more), (MAX_REPORTED, true));
        assert!(
            cut.ends_with("is bad [names], and more, which are not shown]"),
            "{cut}"
        );
    }

    #[test]
    fn of_too_many_errors_the_same_are_shown_in_any_order_of_the_fields() {
        let rules = Ruleset::<Named>::compile().expect("the ruleset compiles");
        let object = |keys: &mut dyn Iterator<Item = usize>| {
            let names: Vec<_> = keys.map(|key| format!("key{key}")).collect();
            json!({"spec": {"names": names}})
        };
        let rising = object(&mut (0..1000));
        let falling = object(&mut (0..1000).rev());
        assert_ne!(rising, falling);
        let messages = [rising, falling].map(|object| {
            rules
                .validate(&ValidationRequest::create(&object))
                .message()
        });
        assert!(messages[0].contains("spec.tags[key0]"), "{}", messages[0]);
        assert_eq!(messages[0], messages[1]);
    }
}
