//! What the desk says of a case, and what has to be equal elsewhere.

use std::collections::BTreeSet;

use kube::core::response::StatusCause;
use serde::Deserialize;

/// What the desk says: the verdict that the other places are compared with.
pub struct Verdict {
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    #[serde(rename = "type")]
    pub error_type: String,
    pub field: String,
    pub message: String,
    pub rule: String,
    pub layer: String,
}

impl Finding {
    /// What has to be equal elsewhere: for structural errors type and path, else the message too.
    pub fn essence(&self) -> (String, String, String) {
        let body = self
            .message
            .strip_prefix(&format!("{}: ", self.field))
            .unwrap_or(&self.message);
        let body = if self.layer == "structural" { "" } else { body };
        (self.error_type.clone(), self.field.clone(), body.to_owned())
    }
}

impl Verdict {
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

    /// What reaches a user through the API server: it asks the gate only when it has nothing to say.
    pub fn through_api_server(&self) -> BTreeSet<(String, String, String)> {
        let own = self.essences(|finding| finding.layer != "rust");
        if own.is_empty() {
            self.essences(|_| true)
        } else {
            own
        }
    }

    /// Whether only the gate would refuse it, so that the API server alone stores it.
    pub fn is_for_rust_alone(&self) -> bool {
        self.findings.iter().all(|finding| finding.layer == "rust")
    }

    /// The message of a condition.
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

    /// The same for causes, which name no layer: the message does not count where the desk has a
    /// structural error there, and none that says the same.
    pub fn essences_of(&self, causes: &[StatusCause]) -> BTreeSet<(String, String, String)> {
        let at_desk = self.essences(|_| true);
        let is_own_wording = |cause: &StatusCause| {
            let essence = |message: &str| {
                (
                    cause.reason.clone(),
                    cause.field.clone(),
                    message.to_owned(),
                )
            };
            !at_desk.contains(&essence(&cause.message)) && at_desk.contains(&essence(""))
        };
        causes
            .iter()
            // A remark of the API server's own, which does not count.
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
