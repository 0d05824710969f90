//! Checks of objects that the rules accept: they take time, and another process does them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockstep_shared_validation::{
    FieldError, FieldPath, Layer, MAX_REPORTED, Policy, RawObject, ValidationResult, Violation,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::admission::request::GroupVersionKind;

/// Id in the warning of an object that was not checked.
const UNCHECKED: &str = "not-checked";

/// Maximum time in which a check must come to a result: a user waits for it.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of checks at the same time. They do not count against the limit on requests in flight.
const MAX_IN_FLIGHT: usize = 32;

/// Object that is to be checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckRequest {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The object.
    pub object: Value,
    /// The object that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_object: Option<Value>,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionCheckResult {
    /// Errors. If there is one, the object is denied.
    #[serde(default)]
    pub errors: Vec<Finding>,
    /// Warnings, such as why an object could not be checked.
    #[serde(default)]
    pub warnings: Vec<Finding>,
}

/// Error or warning of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Id of the check, as that of a rule.
    pub rule: String,
    /// Path of the field, such as `spec`.
    pub field: String,
    /// Description.
    pub message: String,
}

/// Checks that another process does.
#[async_trait]
pub trait RemoteChecks: Send + Sync {
    /// Returns true if the policy demands checks of a kind.
    fn are_wanted(&self, group: &str, kind: &str, policy: &Policy) -> bool;

    /// Returns the annotations that the checks of a kind are about: others need no check than an object that has one of
    /// them, or had one before an update. If there are none, all objects are checked.
    fn annotations(&self, _group: &str, _kind: &str) -> &[&str] {
        &[]
    }

    /// Returns the result of a check.
    ///
    /// # Errors
    ///
    /// There is no result, for this reason.
    async fn check(&self, request: &AdmissionCheckRequest) -> Result<AdmissionCheckResult, String>;
}

/// Checks, and the limit on those at the same time.
#[derive(Clone)]
pub(crate) struct Checks {
    remote: Arc<dyn RemoteChecks>,
    in_flight: Arc<Semaphore>,
}

impl Checks {
    pub(crate) fn new(remote: Arc<dyn RemoteChecks>) -> Self {
        Self {
            remote,
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
        }
    }

    /// Returns true if the policy demands checks of a kind.
    pub(crate) fn are_wanted(&self, kind: &GroupVersionKind, policy: &Policy) -> bool {
        self.remote.are_wanted(&kind.group, &kind.kind, policy)
    }

    /// Returns true if the checks of a kind are about an object or the one that it replaces.
    pub(crate) fn concern<'a>(
        &self,
        kind: &GroupVersionKind,
        objects: impl IntoIterator<Item = &'a RawObject<'a>>,
    ) -> bool {
        let annotations = self.remote.annotations(&kind.group, &kind.kind);
        let has = |object: &RawObject<'_>| {
            let mut annotations = annotations.iter();
            annotations.any(|it| object.tree().has(["metadata", "annotations", it]))
        };
        annotations.is_empty() || objects.into_iter().any(has)
    }

    /// Returns the check of an object. An object that is being deleted is not checked: its finalizers must be removable.
    /// Neither is an update that leaves everything that a check depends on as it was.
    pub(crate) fn of(
        &self,
        kind: &GroupVersionKind,
        object: &Value,
        old: Option<&Value>,
    ) -> Option<PendingCheck> {
        let is_deleted = object.pointer("/metadata/deletionTimestamp").is_some();
        if is_deleted || old.is_some_and(|old| is_same(object, old)) {
            return None;
        }
        Some(PendingCheck {
            checks: self.clone(),
            request: AdmissionCheckRequest {
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                object: object.clone(),
                old_object: old.cloned(),
            },
        })
    }
}

/// Returns true if two objects differ only in what decides nothing about them.
fn is_same(object: &Value, old: &Value) -> bool {
    let fields = ["/spec", "/metadata/labels", "/metadata/annotations"];
    fields
        .iter()
        .all(|field| object.pointer(field) == old.pointer(field))
}

/// Check that is to be done.
pub(crate) struct PendingCheck {
    checks: Checks,
    request: AdmissionCheckRequest,
}

impl PendingCheck {
    /// Does the check, and adds what it finds to the result of the rules. Without a result, that of the rules counts, and a
    /// warning says so.
    ///
    /// `time_limit` is that of the whole request. The check ends before, so that the request is not denied.
    pub(crate) async fn add_to(self, result: &mut ValidationResult, time_limit: Duration) {
        let time_limit = TIME_LIMIT.min(time_limit * 2 / 3);
        let found = match self.checks.in_flight.try_acquire() {
            Ok(_permit) => {
                let checked = timeout(time_limit, self.checks.remote.check(&self.request)).await;
                checked.unwrap_or_else(|_| {
                    Err(format!(
                        "there was no result within {} s",
                        time_limit.as_secs_f32()
                    ))
                })
            }
            Err(_) => Err("too many other objects are being checked".to_owned()),
        };
        match found {
            Ok(found) => {
                let errors = found.errors.into_iter().map(violation);
                result.has_more_errors |= add(&mut result.errors, errors);
                let warnings = found.warnings.into_iter().map(warning);
                result.has_more_warnings |= add(&mut result.warnings, warnings);
            }
            Err(why) => {
                tracing::warn!(kind = self.request.kind, why, "an object was not checked");
                result.warnings.push(warning(Finding {
                    rule: UNCHECKED.to_owned(),
                    field: "spec".to_owned(),
                    message: format!("was validated by rules only: {why}"),
                }));
            }
        }
    }
}

/// Adds findings as long as there is room for more. Returns true if some were left out.
fn add(violations: &mut Vec<Violation>, found: impl ExactSizeIterator<Item = Violation>) -> bool {
    let room = MAX_REPORTED.saturating_sub(violations.len());
    let has_more = found.len() > room;
    violations.extend(found.take(room));
    has_more
}

fn warning(finding: Finding) -> Violation {
    let found = violation(finding);
    Violation {
        error: found.error.into_warning(),
        ..found
    }
}

fn violation(finding: Finding) -> Violation {
    let Finding {
        rule,
        field,
        message,
    } = finding;
    let path = FieldPath::new(&field);
    let message = format!("{message} [{rule}]");
    Violation {
        rule,
        layer: Layer::Rust,
        at: path.clone(),
        error: FieldError::invalid_hidden(path, message),
        inputs: None,
        is_of_related: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::response::Outcome;

    /// Process that finds an error in each object, or does not answer.
    struct Remote {
        answers: bool,
    }

    #[async_trait]
    impl RemoteChecks for Remote {
        fn are_wanted(&self, _group: &str, _kind: &str, _policy: &Policy) -> bool {
            true
        }

        fn annotations(&self, _group: &str, kind: &str) -> &[&str] {
            if kind == "Annotated" { &["a"] } else { &[] }
        }

        async fn check(
            &self,
            request: &AdmissionCheckRequest,
        ) -> Result<AdmissionCheckResult, String> {
            if !self.answers {
                std::future::pending::<()>().await;
            }
            let error = Finding {
                rule: "a".to_owned(),
                field: "spec".to_owned(),
                message: format!("{} is wrong", request.kind),
            };
            Ok(AdmissionCheckResult {
                errors: vec![error],
                warnings: Vec::new(),
            })
        }
    }

    #[test]
    fn checks_about_annotations_concern_objects_that_have_or_had_one() {
        let kind = |kind: &str| GroupVersionKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
        };
        let checks = Checks::new(Arc::new(Remote { answers: true }));
        let read = |text| serde_json::from_str::<RawObject<'_>>(text).expect("an object");
        let plain = read(r#"{"metadata": {"annotations": {"b": "1"}}}"#);
        let annotated = read(r#"{"metadata": {"annotations": {"a": "1"}}}"#);
        assert!(checks.concern(&kind("Trap"), [&plain]), "all objects");
        assert!(!checks.concern(&kind("Annotated"), [&plain]));
        assert!(checks.concern(&kind("Annotated"), [&annotated]));
        assert!(checks.concern(&kind("Annotated"), [&plain, &annotated]));
    }

    fn check(answers: bool, object: &Value, old: Option<&Value>) -> Option<PendingCheck> {
        let kind = GroupVersionKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Trap".to_owned(),
        };
        Checks::new(Arc::new(Remote { answers })).of(&kind, object, old)
    }

    async fn result(answers: bool) -> ValidationResult {
        let mut result = Outcome::Allowed.into_result();
        let check = check(answers, &json!({"spec": 1}), None).expect("a check");
        check.add_to(&mut result, Duration::from_millis(150)).await;
        result
    }

    #[tokio::test]
    async fn an_object_is_denied_only_if_there_is_an_answer_in_time() {
        let found = result(true).await;
        let message = found.message();
        assert_eq!(message, "spec: Invalid value: Trap is wrong [a]");
        let found = result(false).await;
        assert!(found.is_valid());
        let warning = found.warnings[0].error.to_string();
        assert!(warning.contains("no result within 0.1 s"), "{warning}");
    }

    #[test]
    fn deletions_and_updates_that_change_nothing_are_not_checked() {
        let object = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x"]}, "spec": 1});
        let is_checked = |change: &dyn Fn(&mut Value)| {
            let mut new = object.clone();
            change(&mut new);
            check(true, &new, Some(&object)).is_some()
        };
        assert!(!is_checked(&|new| new["metadata"]["finalizers"] = json!([])));
        assert!(!is_checked(&|new| new["status"] = json!({})));
        assert!(is_checked(&|new| new["spec"] = json!(2)));
        assert!(is_checked(&|new| new["metadata"]["labels"] = json!({})));
        assert!(!is_checked(&|new| {
            new["spec"] = json!(2);
            new["metadata"]["deletionTimestamp"] = json!("2026-01-05T10:00:00Z");
        }));
    }
}
