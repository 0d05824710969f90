//! Validation result of `lockstep check` for a case, and the part of it that must be equal everywhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use kube::core::response::StatusCause;
use serde::Deserialize;
use serde_json::Value;

/// Validation result of `lockstep check`, with which the results of webhook, API server and controller are compared.
#[derive(Debug, PartialEq)]
pub struct CheckResult {
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Finding {
    #[serde(rename = "type")]
    pub error_type: String,
    pub field: String,
    pub message: String,
    pub rule: String,
    pub layer: String,
}

impl Finding {
    /// The part that must be equal everywhere: type and path for structural errors, otherwise the message too.
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
    pub fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    pub fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn has(&self, what: impl Fn(&Finding) -> bool) -> bool {
        self.findings.iter().any(what)
    }

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

    /// Causes that a user gets through the API server, which calls the webhook only if it finds no error itself.
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

    /// Message of a condition.
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

    /// The equal part of causes, which name no layer. The message of a cause is ignored if `lockstep check` reports a
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

/// Runs `lockstep check` on a folder and returns the result of each object as JSON.
pub fn check_folder(folder: &Path) -> Vec<Value> {
    results_of(&["--output=json"], folder)
}

/// Runs `lockstep check` on a file with a request in each line and returns the result of each line as JSON.
pub fn check_lines(file: &Path) -> Vec<Value> {
    results_of(&["--input-format=jsonl"], file)
}

fn results_of(arguments: &[&str], path: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("check")
        .args(arguments)
        .arg(path)
        .output()
        .expect("`lockstep check` runs");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let results = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    results
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}
