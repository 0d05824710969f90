//! What others are told of a pipeline under one port: no more than decides who listens there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::listener::{Listener, Spot};
use super::stored::{is_told, name, run_by, text};

/// One address that a pipeline is to listen on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) pipeline: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    created: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) port: String,
    /// Which component it is.
    pub(super) listener: String,
    pub(super) spot: Spot,
    /// Those who run it, and so have it listen here already.
    held_by: Vec<String>,
}

impl Claim {
    pub(super) fn new(pipeline: &Value, listener: &Listener<'_>) -> Self {
        let metadata = &pipeline["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let labels =
            labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let is_told = is_told(pipeline, &listener.address.to_string());
        Self {
            pipeline: name(pipeline),
            namespace: text(&metadata["namespace"]),
            uid: text(&metadata["uid"]),
            created: text(&metadata["creationTimestamp"]),
            labels: labels.collect(),
            port: listener.port.clone(),
            listener: listener.name(),
            spot: listener.spot(),
            held_by: if is_told {
                run_by(pipeline)
            } else {
                Vec::new()
            },
        }
    }

    /// Whether its author may be told of what is in a namespace: an administrator of all, a tenant of his own.
    pub(super) fn may_know(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || self.namespace == namespace
    }

    /// Who comes first among those whom one runs: whoever listens there already, then the elder.
    pub(super) fn precedence(&self, runner: &str) -> impl Ord + use<> {
        let is_held = self.held_by.iter().any(|it| it == runner);
        (!is_held, self.created.clone(), self.uid.clone())
    }
}
