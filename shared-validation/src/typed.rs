//! Layer 3: the Rust rules of a kind.

use serde_json::Value;

use crate::field_error::FieldError;
use crate::field_path::FieldPath;
use crate::kind::Kind;
use crate::pointer;
use crate::rule::{Findings, Layer, Rule, Severity, Subject};
use crate::ruleset::{Case, LayerJudge, Report};
use crate::verdict::Violation;

/// Judges by the Rust rules of a kind.
pub(crate) struct Typed<K: Kind> {
    pub(crate) rules: Vec<Rule<K>>,
}

impl<K: Kind> LayerJudge for Typed<K> {
    fn judge(&self, case: &Case<'_>, report: &mut Report) {
        let object = match K::deserialize(case.object) {
            Ok(object) => object,
            // The structural layer has already said which field has the wrong type.
            Err(_) if report.has_errors() => return,
            Err(error) => {
                let error = FieldError::invalid_hidden(
                    FieldPath::root(),
                    format!("cannot be read: {error} [readable]"),
                );
                let violation = Violation {
                    rule: "readable".to_owned(),
                    layer: Layer::Rust,
                    error,
                };
                return report.add(violation, false);
            }
        };
        // What the object was may be unreadable; then there is nothing to compare with.
        let read = |value: Option<&Value>| value.and_then(|value| K::deserialize(value).ok());
        let before = read(case.before);
        let old = read(case.old);
        for rule in &self.rules {
            let found = run(
                rule,
                &Subject {
                    operation: case.operation,
                    object: &object,
                    old: before.as_ref(),
                },
            );
            if found.is_empty() {
                continue;
            }
            let unchanged = case.old.is_some_and(|old| {
                rule.reads
                    .iter()
                    .all(|field| pointer::get(old, field) == pointer::get(case.object, field))
            });
            let inherited = match &old {
                // The old object by itself: what it was before does not matter for what it had wrong.
                Some(old) if unchanged => run(
                    rule,
                    &Subject {
                        operation: case.operation,
                        object: old,
                        old: None,
                    },
                ),
                _ => Vec::new(),
            };
            for error in found {
                let was_there = inherited
                    .iter()
                    .any(|e| e.error_type == error.error_type && e.path == error.path);
                let error = FieldError {
                    detail: format!("{} [{}]", error.detail, rule.id),
                    ..error
                };
                let violation = Violation {
                    rule: rule.id.to_owned(),
                    layer: Layer::Rust,
                    error,
                };
                match rule.severity {
                    Severity::Error => report.add(violation, was_there),
                    Severity::Warning => report.warn(violation),
                }
            }
        }
    }
}

fn run<K>(rule: &Rule<K>, subject: &Subject<'_, K>) -> Vec<FieldError> {
    let mut findings = Findings::default();
    (rule.check)(subject, &mut findings);
    findings.into_errors()
}
