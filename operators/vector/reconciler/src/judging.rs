//! The step of all kinds: an object is judged, and its status tells of it.

use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use controller::{
    Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError, Related, SyncRequest, Watch,
};
use kube::api::ApiResource;
use serde_json::{Map, Value, json};
use shared_validation::{CurrentPolicy, Kind, Verdict};
use vector_rules::{Catalogue, Pipeline, Role, sharing};

use crate::hash;
use crate::neighbours::Neighbours;

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
    /// What it may share a Vector with, if it is what Vectors run.
    neighbours: Neighbours,
    kind: PhantomData<fn() -> K>,
}

impl<K: Pipeline> Judging<K> {
    /// Judges pipelines under a policy, and again when that changes: among those of the kinds that are installed.
    #[must_use]
    pub fn pipelines(policy: CurrentPolicy, installed: &[ApiResource]) -> Self {
        Self {
            policy,
            hash: "LastAppliedPipelineHash",
            has_role: true,
            neighbours: Neighbours::among(installed),
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
            neighbours: Neighbours::among(&[]),
            kind: PhantomData,
        }
    }

    fn hash(&self, object: &Value, others: &Value) -> i64 {
        let section = K::settings().map(|settings| settings.section);
        let rules = self.policy.get().told_of(K::KIND, section);
        hash::of(object, others, &rules, &Catalogue::shipped().version)
    }
}

#[async_trait]
impl<K: Kind> Reconcile for Judging<K> {
    type Kind = K;

    fn watches(&self) -> Vec<Watch> {
        self.neighbours.watches()
    }

    fn others(&self, object: &Value, related: Related<'_>) -> Result<Value, ReconcileError> {
        self.neighbours.shared(object, related)
    }

    fn is_settled(&self, object: &Value, others: &Value) -> bool {
        object["status"][self.hash] == self.hash(object, others)
    }

    fn judged(&self, object: &Value, others: &Value, verdict: &Verdict) -> Map<String, Value> {
        let sources = object.pointer("/spec/sources").and_then(Value::as_object);
        let role = sources.and_then(Role::of).map(Role::as_str);
        // What could not be judged goes on as before.
        let is_new = self.has_role && (verdict.is_valid() || verdict.is_conclusive());
        let role = is_new.then_some(("role".to_owned(), json!(role)));
        let listens = is_new.then(|| listens_on(object, others, verdict));
        let reason = (!verdict.is_valid()).then(|| shortened(verdict.message()));
        let fields = json!({
            "configCheckResult": verdict.is_valid(),
            "reason": reason,
            // Without it, the object is judged again.
            self.hash: verdict.is_conclusive().then(|| self.hash(object, others)),
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let listens = listens.into_iter().flatten();
        fields.into_iter().chain(role).chain(listens).collect()
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

/// Where a pipeline listens and who runs it, or what it waits for. Nothing of one that cannot run for another reason.
fn listens_on(object: &Value, others: &Value, verdict: &Verdict) -> Map<String, Value> {
    let mut errors = verdict.errors.iter();
    let could_run = errors.all(|violation| violation.rule == sharing::ADDRESS_FREE);
    let waits = !verdict.is_valid();
    let addresses = could_run.then(|| sharing::addresses(object, others, waits));
    let run_by = (!waits).then(|| sharing::run_by(others));
    let fields = [("addresses", addresses), ("runBy", run_by)];
    let told = fields.into_iter().map(|(name, texts)| {
        let texts = texts.filter(|texts| !texts.is_empty());
        (name.to_owned(), json!(texts))
    });
    told.collect()
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

#[cfg(test)]
mod tests {
    use shared_validation::{Candidate, FieldError, FieldPath, Judge, Layer, Ruleset, Violation};
    use vector_rules::VectorPipeline;

    use super::*;

    #[test]
    fn what_could_not_be_judged_goes_on_as_before() {
        let judging = Judging::<VectorPipeline>::pipelines(CurrentPolicy::default(), &[]);
        let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let mut object = VectorPipeline::example();
        object["apiVersion"] = "observability.kaasops.io/v1alpha1".into();
        object["kind"] = "VectorPipeline".into();
        object["metadata"] = json!({"name": "a", "namespace": "team"});
        let verdict = rules.check(&Candidate::create(&object));
        let told = |verdict: &Verdict| {
            let status = judging.judged(&object, &Value::Null, verdict);
            ["role", "addresses", "runBy"].map(|field| status.contains_key(field))
        };
        assert_eq!(told(&verdict), [true; 3], "{}", verdict.message());
        let violation = Violation {
            rule: "programs-compile".to_owned(),
            layer: Layer::Rust,
            at: FieldPath::root(),
            error: FieldError::internal(FieldPath::root(), "too much"),
            inputs: None,
        };
        let mut failed = verdict.clone();
        failed.errors.push(violation.clone());
        assert_eq!(told(&failed), [false; 3]);
        // Who is only warned of it is run.
        let mut warned = verdict;
        warned.warnings.push(violation);
        assert_eq!(told(&warned), [true; 3]);
        let status = judging.judged(&object, &Value::Null, &warned);
        assert_eq!(
            status["LastAppliedPipelineHash"],
            Value::Null,
            "it is judged again"
        );
    }
}
