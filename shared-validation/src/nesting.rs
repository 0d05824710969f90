//! Bound of the nesting of an object that has free fields: every program that reads it recurses as deep.

use std::collections::HashMap;

use crd_validation::json::{MAX_DEPTH, Tree};
use crd_validation::{FieldError, FieldPath, fingerprint};
use serde_json::Value;

use crate::layer::LayerContext;
use crate::report::Report;
use crate::result::Violation;
use crate::rule::{Layer, Severity};
use crate::rule_info::RuleInfo;

/// Id of the rule.
const RULE: &str = "nesting";

/// Largest number of maps and lists around a value. `metadata.managedFields` repeats the nesting a little deeper, and common
/// JSON parsers read 128 levels.
const MAX_LEVELS: usize = 64;

const PRESERVES_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

/// Number of names in the path of an error. A whole path would have more than [`MAX_LEVELS`].
const SHOWN: usize = 4;

/// Returns true if a CRD lets users write fields that it does not describe. Only these can be nested without bound. The status
/// is written by the controller.
pub(crate) fn applies_to(crd: &Value) -> bool {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let schemas = versions.map(|version| &version["schema"]["openAPIV3Schema"]);
    schemas.into_iter().any(|schema| {
        let fields = schema["properties"].as_object().into_iter().flatten();
        let mut written = fields.filter(|(name, _)| *name != "status");
        schema[PRESERVES_UNKNOWN] == true || written.any(|(_, field)| has_free_fields(field))
    })
}

fn has_free_fields(schema: &Value) -> bool {
    match schema {
        Value::Object(parts) => {
            schema[PRESERVES_UNKNOWN] == true || parts.values().any(has_free_fields)
        }
        Value::Array(parts) => parts.iter().any(has_free_fields),
        _ => false,
    }
}

pub(crate) fn rule_info() -> RuleInfo {
    RuleInfo {
        id: RULE.to_owned(),
        layer: Layer::Rust,
        severity: Severity::Error,
        description: format!("Nothing is nested in more than {MAX_LEVELS} maps and lists."),
        reference: "Lockstep's own: every program that reads the object recurses as deep, and parsers have limits".to_owned(),
        fields: Vec::new(),
        expression: None,
    }
}

/// Returns true if an object violates the rule.
pub(crate) fn is_violated(object: &Tree<'_>) -> bool {
    fn is_deeper(value: &Tree<'_>, levels: usize) -> bool {
        match value {
            Tree::List(items) => {
                levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1))
            }
            Tree::Object(fields) => {
                levels == 0 || fields.iter().any(|(_, value)| is_deeper(value, levels - 1))
            }
            _ => false,
        }
    }
    is_deeper(object, MAX_LEVELS)
}

/// Adds an error for each part of an object that is nested too deep. An unchanged one of a stored object is a warning, but
/// not in the controller if the object is so deep that it is not read completely.
pub(crate) fn validate(case: &LayerContext<'_>, report: &mut Report<'_>) {
    let found = deep_parts(case.object);
    if found.is_empty() {
        return;
    }
    // An object of megabytes may have very many deep parts: the old one is walked once, and each of its parts is found by its path.
    let old = case.old.map(deep_parts).unwrap_or_default();
    let old: HashMap<_, _> = old
        .into_iter()
        .map(|part| (part.path, part.value))
        .collect();
    for part in found {
        let is_unchanged = old.get(&part.path) == Some(&part.value);
        let is_complete = part.levels < MAX_DEPTH;
        let detail = format!(
            "must not be nested in more than {MAX_LEVELS} maps and lists; reduce the nesting [{RULE}]"
        );
        let violation = Violation {
            rule: RULE.to_owned(),
            layer: Layer::Rust,
            at: part.path.clone(),
            error: FieldError::invalid_hidden(part.path, detail),
            inputs: is_complete.then(|| fingerprint([part.value])),
            is_of_related: false,
        };
        report.deny_or_ratchet(violation, is_unchanged);
    }
}

/// Part of an object that contains too many levels.
struct DeepPart<'a> {
    path: FieldPath,
    value: &'a Value,
    /// Levels of the whole object in this part.
    levels: usize,
}

/// Returns the parts in which the object is too deep, each by the beginning of its path.
fn deep_parts(object: &Value) -> Vec<DeepPart<'_>> {
    let mut deep = Vec::new();
    // A part that is not deep enough is not entered.
    let mut parts = vec![(FieldPath::root(), object, 0)];
    while let Some((path, value, above)) = parts.pop() {
        let levels = above + levels(value);
        if levels <= MAX_LEVELS {
            continue;
        }
        if above == SHOWN {
            deep.push(DeepPart {
                path,
                value,
                levels,
            });
            continue;
        }
        match value {
            Value::Object(fields) => {
                let below = fields.iter();
                parts.extend(below.map(|(name, value)| (path.child(name), value, above + 1)));
            }
            Value::Array(items) => {
                let below = items.iter().enumerate();
                parts.extend(below.map(|(at, value)| (path.index(at), value, above + 1)));
            }
            _ => {}
        }
    }
    deep
}

#[cfg(test)]
thread_local! {
    /// Number of values whose levels were counted.
    static LEVELS_READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the number of maps and lists that are nested in a value, with itself.
fn levels(value: &Value) -> usize {
    #[cfg(test)]
    LEVELS_READ.set(LEVELS_READ.get() + 1);
    let below = match value {
        Value::Object(fields) => fields.values().map(levels).max(),
        Value::Array(items) => items.iter().map(levels).max(),
        _ => return 0,
    };
    1 + below.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crd_validation::RatchetedViolations;
    use crd_validation::json::RawObject;
    use serde_json::json;

    use super::*;
    use crate::operation::Operation;
    use crate::result::ValidationResult;

    /// Returns an object that is nested as deep as this.
    fn nested(levels: usize) -> Value {
        let mut value = json!({});
        for _ in 5..levels {
            value = json!({"a": value});
        }
        json!({"spec": {"sinks": {"out": {"batch": value}}, "b": [[]]}})
    }

    fn validated(
        object: &Value,
        old: Option<&Value>,
        known: Option<&RatchetedViolations>,
    ) -> ValidationResult {
        let found = crd_validation::Report::new(known);
        let mut report = Report::new(found, known);
        let case = LayerContext {
            operation: Operation::Create,
            object,
            old,
            before: None,
            policy: None,
            related: None,
        };
        validate(&case, &mut report);
        report.into_result(object.clone(), vec![])
    }

    /// Returns the path of the errors and whether they have an identity by which the controller knows them.
    fn errors(object: &Value, old: Option<&Value>) -> (Vec<(String, bool)>, usize) {
        let result = validated(object, old, None);
        let errors = result.errors.iter();
        let errors = errors.map(|error| (error.at.to_string(), error.inputs.is_some()));
        (errors.collect(), result.warnings.len())
    }

    #[test]
    fn the_controller_knows_a_deep_part_of_a_stored_object() {
        let object = nested(MAX_LEVELS + 1);
        let known = validated(&object, Some(&object), None).ratcheted;
        assert!(validated(&object, None, Some(&known)).is_valid());
        let deeper = nested(MAX_LEVELS + 2);
        assert!(!validated(&deeper, None, Some(&known)).is_valid());
    }

    #[test]
    fn an_object_may_have_as_many_levels_as_the_rule_says() {
        for (levels_of_object, expected) in [
            (5, vec![]),
            (MAX_LEVELS, vec![]),
            (
                MAX_LEVELS + 1,
                vec![("spec.sinks.out.batch".to_owned(), true)],
            ),
            (MAX_DEPTH, vec![("spec.sinks.out.batch".to_owned(), false)]),
        ] {
            let object = nested(levels_of_object);
            assert_eq!(levels(&object), levels_of_object);
            let text = object.to_string();
            let raw: RawObject<'_> = serde_json::from_str(&text).expect("JSON");
            assert_eq!(is_violated(raw.tree()), !expected.is_empty());
            assert_eq!(errors(&object, None), (expected, 0));
        }
    }

    #[test]
    fn only_an_unchanged_part_of_a_stored_object_may_be_as_deep() {
        let object = nested(MAX_LEVELS + 1);
        assert_eq!(errors(&object, Some(&object)), (vec![], 1));
        let old = nested(MAX_LEVELS + 2);
        assert_eq!(errors(&object, Some(&old)).0.len(), 1);
    }

    /// Returns an object with this many parts side by side that are too deep, and one that is as deep as can be.
    fn with_deep_parts(number: usize, innermost: &str) -> Value {
        let deep =
            |levels: usize| format!("{}{innermost}{}", "[".repeat(levels), "]".repeat(levels));
        let part = deep(MAX_LEVELS);
        let parts: Vec<_> = (0..number)
            .map(|at| format!(r#""p{at}":{{"b":{part}}}"#))
            .collect();
        let text = format!(
            r#"{{"spec": {{"sinks": {{{}}}, "deepest": {}}}}}"#,
            parts.join(","),
            deep(9_000)
        );
        let raw: RawObject<'_> = serde_json::from_str(&text).expect("JSON");
        assert!(is_violated(raw.tree()));
        raw.to_value()
    }

    #[test]
    fn the_work_for_many_deep_parts_is_linear_and_the_errors_are_bounded() {
        const PARTS: usize = 20_000;
        let object = with_deep_parts(PARTS, "1");
        let changed = with_deep_parts(PARTS, "2");
        let values = PARTS * (MAX_LEVELS + 2) + MAX_DEPTH + 4;
        for (old, objects) in [(None, 1), (Some(&changed), 2), (Some(&object), 2)] {
            let before = LEVELS_READ.get();
            let result = validated(&object, old, None);
            let read = LEVELS_READ.get() - before;
            // Each value once for each name in the path of an error, and once for the whole object.
            let most = objects * (SHOWN + 1) * values;
            assert!(read <= most, "{read} of {most}");
            let is_unchanged = old == Some(&object);
            assert_eq!(result.has_more_errors, !is_unchanged);
            assert_eq!(result.has_more_warnings, is_unchanged);
            let shown = result.errors.len() + result.warnings.len();
            assert!(shown <= crd_validation::MAX_REPORTED + 1, "{shown}");
            assert!(result.message().len() < 64 * 1024);
        }
    }

    #[test]
    fn only_free_fields_of_users_can_be_deep() {
        let open = json!({"type": "object", PRESERVES_UNKNOWN: true});
        let crd = |name: &str, field: &Value| {
            let properties = json!({name: {"type": "object", "properties": {"a": field}}});
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": properties}}}]}})
        };
        assert!(applies_to(&crd("spec", &open)));
        assert!(!applies_to(&crd("status", &open)));
        assert!(!applies_to(&crd("spec", &json!({"type": "object"}))));
    }
}
