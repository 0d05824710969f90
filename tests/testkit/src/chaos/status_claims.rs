//! Check of what a status claims at the moment at which it is written.

use serde_json::Value;

use crate::chaos::expectations::take_match;
use crate::chaos::process_state::ProcessState;
use crate::chaos::violation::{Property, Violation};

/// State of the external system when a status is sent.
pub(crate) struct Claim {
    resources: Vec<Value>,
    /// Journal's number at that time.
    sent_at: u64,
}

impl Claim {
    /// Reads the external system before a status is sent.
    pub(crate) async fn before(process: &ProcessState) -> Self {
        Self {
            resources: process.trial.resources().await.into_values().collect(),
            sent_at: process.trial.journal.activity(),
        }
    }

    /// Compares an object that was stored with a new status with the state before: if it claims to be ready with a
    /// generation, the external system had what this generation wants.
    pub(crate) fn check(mut self, process: &ProcessState, stored: &Value) {
        let metadata = &stored["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let uid = metadata["uid"].as_str().unwrap_or_default();
        let conditions = stored["status"]["conditions"].as_array();
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Ready");
        let Some(ready) = ready.filter(|ready| ready["status"] == "True") else {
            return;
        };
        if !metadata["deletionTimestamp"].is_null() {
            return;
        }
        let trial = &process.trial;
        let generation = ready["observedGeneration"].as_i64().unwrap_or_default();
        let is_current = metadata["generation"].as_i64() == Some(generation);
        let spec = if is_current {
            Some(stored["spec"].clone())
        } else {
            trial.spec_of(uid, generation)
        };
        let Some(spec) = spec else {
            return;
        };
        // What another client has changed during the reconciliation need not have been seen.
        let since = process.began(name).unwrap_or(self.sent_at);
        if trial.is_disturbed_since(name, since) {
            return;
        }
        let mut object = stored.clone();
        object["spec"] = spec;
        let expected = (trial.expectations.external)(&object);
        let missing = expected
            .iter()
            .find(|expected| take_match(&mut self.resources, expected, |it| it).is_none());
        if let Some(missing) = missing {
            trial.violate(Violation::new(
                Property::TruthfulStatus,
                name,
                format!("Ready=True with observedGeneration {generation} only while the external system has {missing}"),
                format!("the status was written while it had {}", Value::from(self.resources)),
            ));
        }
    }
}
