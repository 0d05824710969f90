//! Result of the command `check` for a case, and the part of it that must be equal everywhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use kube::core::response::StatusCause;
use serde::Deserialize;
use serde_json::Value;

use crate::cases::case_file::Case;

/// Result of the command `check`, with which the results of webhook, API server and controller are compared.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct CheckResult {
    /// Errors in the order in which they are reported.
    pub findings: Vec<Finding>,
}

/// Error in the output of `check`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    #[serde(rename = "type")]
    /// Type of the error, as apimachinery names it.
    pub error_type: String,
    /// Path of the field.
    pub field: String,
    /// Complete message.
    pub message: String,
    /// Id of the rule.
    pub rule: String,
    /// Layer of the rule: `schema`, `cel` or `rust`.
    pub layer: String,
}

impl Finding {
    /// Returns the part that must be equal everywhere: type and path for structural errors, otherwise the message too.
    pub fn essence(&self) -> (String, String, String) {
        let body = self
            .message
            .strip_prefix(&format!("{}: ", self.field))
            .unwrap_or(&self.message);
        let body = if self.layer == "schema" { "" } else { body };
        (self.error_type.clone(), self.field.clone(), body.to_owned())
    }
}

impl CheckResult {
    /// Returns the result in the output of `check`.
    ///
    /// # Panics
    ///
    /// If it is not the one that the case expects.
    pub fn expected_by(case: &Case, result: &Value) -> Self {
        let findings = |name: &str| -> Vec<Finding> {
            serde_json::from_value(result[name].clone()).expect("the output of `check`")
        };
        let errors = findings("errors");
        let found: Vec<_> = errors
            .iter()
            .map(|found| (&found.rule, &found.error_type, &found.field))
            .collect();
        let expected = case.errors.iter();
        let expected: Vec<_> = expected
            .map(|error| (&error.rule, &error.error_type, &error.field))
            .collect();
        assert!(
            found == expected,
            "{case} in `check`: the file expects the errors {expected:#?}, and `check` has found {found:#?}"
        );
        let is_valid = result["valid"] == true;
        assert_eq!(is_valid, expected.is_empty(), "{case} in `check`");
        if let Some(rules) = &case.warnings {
            let found = findings("warnings").into_iter();
            let found: Vec<_> = found.map(|warning| warning.rule).collect();
            assert_eq!(&found, rules, "warnings of {case} in `check`");
        }
        for (expected, found) in case.errors.iter().zip(&errors) {
            let message = &found.message;
            match &expected.detail {
                Some(detail) => assert!(message.ends_with(detail), "{case} in `check`: {message}"),
                None => assert!(
                    expected.is_structural(),
                    "{case}: the case must name the `detail` of {}: {message}",
                    expected.rule
                ),
            }
        }
        Self::new(errors)
    }

    /// Returns a result with these errors.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// Returns true without errors.
    pub fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns true if an error satisfies the predicate.
    pub fn has(&self, what: impl Fn(&Finding) -> bool) -> bool {
        self.findings.iter().any(what)
    }

    /// Returns the equal parts of the errors that satisfy the predicate.
    pub fn essences(
        &self,
        wanted: impl Fn(&Finding) -> bool,
    ) -> BTreeSet<(String, String, String)> {
        self.findings
            .iter()
            .filter(|finding| wanted(finding))
            .map(Finding::essence)
            .collect()
    }

    /// Returns the causes that a user gets through the API server, which calls the webhook only if it finds no error itself.
    pub fn through_api_server(&self) -> BTreeSet<(String, String, String)> {
        let own = self.essences(|finding| finding.layer != "rust");
        if own.is_empty() {
            self.essences(|_| true)
        } else {
            own
        }
    }

    /// Returns true if only the webhook would deny the object, so that the API server stores it without the webhook.
    pub fn is_for_rust_alone(&self) -> bool {
        self.findings.iter().all(|finding| finding.layer == "rust")
    }

    /// Returns the message of the condition `Valid`.
    pub fn message(&self) -> String {
        let messages: Vec<_> = self
            .findings
            .iter()
            .map(|finding| finding.message.as_str())
            .collect();
        match messages.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("[{}]", many.join(", ")),
        }
    }

    /// Returns the equal parts of causes, which name no layer. The message of a cause is ignored if `check` reports a
    /// structural error there and no error with that message.
    pub fn essences_of(&self, causes: &[StatusCause]) -> BTreeSet<(String, String, String)> {
        let by_check = self.essences(|_| true);
        let is_own_wording = |cause: &StatusCause| {
            let essence = |message: &str| {
                (
                    cause.reason.clone(),
                    cause.field.clone(),
                    message.to_owned(),
                )
            };
            !by_check.contains(&essence(&cause.message)) && by_check.contains(&essence(""))
        };
        causes
            .iter()
            // Added by the API server itself; not compared.
            .filter(|cause| {
                !cause
                    .message
                    .contains("some validation rules were not checked")
            })
            .map(|cause| {
                let body = if is_own_wording(cause) {
                    String::new()
                } else {
                    cause.message.clone()
                };
                (cause.reason.clone(), cause.field.clone(), body)
            })
            .collect()
    }
}

/// Runs the command `check` of a program and returns the result of each object as JSON.
///
/// # Panics
///
/// If the program does not run, or prints anything else.
pub fn check(program: &Path, arguments: &[&str], path: &Path) -> Vec<Value> {
    let mut command = Command::new(program);
    command.arg("check").args(arguments).arg(path);
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let results = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    results
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}
