//! The step of all kinds: an object is judged, and its status tells of it.

use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use controller::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError, SyncRequest};
use serde_json::{Map, Value, json};
use shared_validation::{CurrentPolicy, Kind, Verdict};
use vector_rules::{Pipeline, Role};

use crate::hash;

/// How long an object that was judged is left unseen when nothing changes.
const RESYNC: Duration = Duration::from_hours(10);

/// The longest reason that a status holds, in bytes.
const LONGEST_REASON: usize = 32_768;

/// Judges objects of one kind.
pub struct Judging<K> {
    policy: CurrentPolicy,
    /// The field of the status that holds the fingerprint.
    hash: &'static str,
    /// Whether the status says who runs it.
    has_role: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K: Pipeline> Judging<K> {
    /// Judges pipelines under a policy, and again when that changes.
    #[must_use]
    pub fn pipelines(policy: CurrentPolicy) -> Self {
        Self {
            policy,
            hash: "LastAppliedPipelineHash",
            has_role: true,
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Judging<K> {
    /// Judges what runs pipelines.
    #[must_use]
    pub fn workloads(policy: CurrentPolicy) -> Self {
        Self {
            policy,
            hash: "LastAppliedConfigHash",
            has_role: false,
            kind: PhantomData,
        }
    }

    fn hash(&self, object: &Value) -> i64 {
        let section = K::settings().map(|settings| settings.section);
        hash::of(object, &self.policy.get().told_of(K::KIND, section))
    }
}

#[async_trait]
impl<K: Kind> Reconcile for Judging<K> {
    type Kind = K;

    fn is_settled(&self, object: &Value) -> bool {
        object["status"][self.hash] == self.hash(object)
    }

    fn judged(&self, object: &Value, verdict: &Verdict) -> Map<String, Value> {
        let sources = object.pointer("/spec/sources").and_then(Value::as_object);
        let role = sources.and_then(Role::of).map(Role::as_str);
        let role = self.has_role.then_some(("role".to_owned(), json!(role)));
        let reason = (!verdict.is_valid()).then(|| shortened(verdict.message()));
        let fields = json!({
            "configCheckResult": verdict.is_valid(),
            "reason": reason,
            // Without it, the object is judged again.
            self.hash: verdict.is_conclusive().then(|| self.hash(object)),
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.into_iter().chain(role).collect()
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
        text.truncate(text.floor_char_boundary(LONGEST_REASON - END.len()));
        text.push_str(END);
    }
    text
}
