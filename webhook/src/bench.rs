//! Review → candidate → verdict → response.

use axum::http::StatusCode;
use serde_json::Value;
use serde_json::value::RawValue;
use shared_validation::{
    Accepted, Candidate, ClusterCrd, CurrentPolicy, Judge, Rulesets, Verdict, Written,
};

use crate::crds::CurrentCrds;
use crate::limits::Limit;
use crate::metrics::{Metrics, ViolationLabels};
use crate::refusal::Refusal;
use crate::response::{self, Review};
use crate::review::Request;

/// What is judged by.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) rulesets: Rulesets,
    pub(crate) policy: CurrentPolicy,
    pub(crate) crds: CurrentCrds,
    pub(crate) metrics: Metrics,
}

/// What is asked of an object.
#[derive(Clone, Copy)]
pub(crate) enum Question {
    /// Whether it keeps its rules.
    Stands,
    /// Which defaults it lacks.
    Lacks,
}

impl Bench {
    /// Answers one review.
    pub(crate) fn review(
        &self,
        question: Question,
        request: &Request<'_>,
    ) -> Result<Review, Refusal> {
        let ruleset = self
            .rulesets
            .get(&request.kind.group, &request.kind.kind)
            .filter(|ruleset| ruleset.version() == request.kind.version);
        let Some(ruleset) = ruleset else {
            let kind = &request.kind;
            let message = format!(
                "no rules here for {}/{} {}; the webhook configuration must match registered kinds only",
                kind.group, kind.version, kind.kind
            );
            return Ok(Review::refuse(
                &request.uid,
                StatusCode::BAD_REQUEST.as_u16(),
                "BadRequest",
                &message,
            ));
        };
        let is_write = match request.operation.as_str() {
            "CREATE" | "UPDATE" => true,
            "DELETE" | "CONNECT" => false,
            other => {
                return Err(Refusal::bad_request(format!(
                    "`request.operation` is no operation: `{other}`"
                )));
            }
        };
        if !is_write
            || request
                .sub_resource
                .as_deref()
                .is_some_and(|name| !name.is_empty())
        {
            return Ok(Review::pass(&request.uid));
        }
        let crd = match self.crds.of(ruleset.as_ref()) {
            // The API server judges what was written, by that version's schema.
            ClusterCrd::Same if !request.is_as_written() => ClusterCrd::Unknown,
            crd => crd,
        };
        if passes(ruleset.as_ref(), question, request, crd) {
            if crd == ClusterCrd::Same {
                self.metrics.rust_only.inc();
            }
            return Ok(Review::pass(&request.uid));
        }
        let object = self
            .parse(request.object, "object")?
            .ok_or_else(|| Refusal::bad_request("`request.object` is missing: nothing to judge"))?;
        let old = self.parse(request.old_object, "oldObject")?;
        if request.operation == "UPDATE" && old.is_none() {
            return Err(Refusal::bad_request(
                "`request.oldObject` is missing: a change cannot be judged",
            ));
        }
        let accepted = old.as_ref().and_then(Accepted::read);
        let candidate = Candidate::replacing(&object, old.as_ref(), accepted.as_ref());
        let policy = self.policy.get();
        let candidate = candidate.under(&policy).beside(crd);
        Ok(match question {
            Question::Lacks => Review::additions(&request.uid, &ruleset.additions(&candidate)),
            Question::Stands => {
                let verdict = ruleset.check(&candidate);
                let review = Review::verdict(request, &verdict);
                self.record(request, &verdict, &review);
                review
            }
        })
    }

    fn parse(&self, raw: Option<&RawValue>, name: &str) -> Result<Option<Value>, Refusal> {
        let Some(raw) = raw else { return Ok(None) };
        let value = Written::new(raw).read::<Value>().map_err(|error| {
            let problem = error.to_string();
            if problem.starts_with("recursion limit exceeded") {
                self.metrics.limited(Limit::Depth);
            }
            Refusal::bad_request(format!("`request.{name}` cannot be read: {problem}"))
        })?;
        Ok((!value.is_null()).then_some(value))
    }

    /// Counts what fired and logs a refusal: who, what kind, which rules; never the object.
    fn record(&self, request: &Request<'_>, verdict: &Verdict, review: &Review) {
        for violation in verdict.errors.iter().chain(&verdict.audited) {
            let labels = ViolationLabels {
                kind: request.kind.kind.clone(),
                rule: violation.rule.clone(),
                place: "gate",
            };
            self.metrics.violations.get_or_create(&labels).inc();
        }
        if !review.is_allowed() {
            tracing::info!(
                uid = request.uid,
                user = request.user_info.username,
                kind = request.kind.kind,
                namespace = request.namespace,
                name = request.name,
                operation = request.operation,
                dry_run = request.dry_run,
                rules = response::rules(verdict.errors.iter()),
                "refused"
            );
        }
    }
}

/// Whether a review passes with nothing to say: most do, and this is the quicker way to tell.
fn passes(ruleset: &dyn Judge, question: Question, request: &Request<'_>, crd: ClusterCrd) -> bool {
    let old = request.old_object.map(Written::new);
    let Some(object) = request.object.map(Written::new) else {
        return false;
    };
    let is_whole = old.is_some() || request.operation == "CREATE";
    is_whole
        && match question {
            Question::Stands => ruleset.passes(object, old, crd),
            Question::Lacks => ruleset.is_complete(object, crd),
        }
}
