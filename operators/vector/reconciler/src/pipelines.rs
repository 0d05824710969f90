//! The step of the kinds that hold a pipeline.

use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use controller::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError, SyncRequest};
use serde_json::{Map, Value, json};
use shared_validation::{CurrentPolicy, Verdict};
use vector_rules::{Pipeline, Role};

use crate::hash;

/// How long a pipeline that was judged is left unseen when nothing changes.
const RESYNC: Duration = Duration::from_hours(10);

/// The longest reason that a status holds, in bytes.
const LONGEST_REASON: usize = 32_768;

const HASH: &str = "LastAppliedPipelineHash";

/// Judges pipelines of one kind.
pub struct Pipelines<K> {
    policy: CurrentPolicy,
    kind: PhantomData<fn() -> K>,
}

impl<K> Pipelines<K> {
    /// Judges under a policy, and again when that changes.
    #[must_use]
    pub fn new(policy: CurrentPolicy) -> Self {
        Self {
            policy,
            kind: PhantomData,
        }
    }

    fn hash(&self, object: &Value) -> i64 {
        hash::of(object, &format!("{:?}", self.policy.get()))
    }
}

#[async_trait]
impl<K: Pipeline> Reconcile for Pipelines<K> {
    type Kind = K;

    fn is_settled(&self, object: &Value) -> bool {
        object["status"][HASH] == self.hash(object)
    }

    fn judged(&self, object: &Value, verdict: &Verdict) -> Map<String, Value> {
        let sources = object.pointer("/spec/sources").and_then(Value::as_object);
        let role = sources.and_then(Role::of).map(Role::as_str);
        let reason = (!verdict.is_valid()).then(|| shortened(verdict.message()));
        let fields = json!({
            "role": role,
            "configCheckResult": verdict.is_valid(),
            "reason": reason,
            // Without it, the pipeline is judged again.
            HASH: verdict.is_conclusive().then(|| self.hash(object)),
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    async fn reconcile(&self, _: &SyncRequest<'_, K>) -> Result<Progress, ReconcileError> {
        let readiness = Readiness {
            ready: true,
            reason: "Valid",
            message: "Vector would start with it".to_owned(),
        };
        Ok(Progress {
            status: Map::new(),
            readiness: Some(readiness),
            requeue_after: RESYNC,
            children: Vec::new(),
        })
    }

    async fn finalize(&self, _: &Deleted<'_>) -> Result<Finalized, ReconcileError> {
        Ok(Finalized::Gone)
    }
}

/// The beginning of a text that is too long for a status.
fn shortened(mut text: String) -> String {
    const END: &str = "…";
    if text.len() > LONGEST_REASON {
        let mut at = LONGEST_REASON - END.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push_str(END);
    }
    text
}
