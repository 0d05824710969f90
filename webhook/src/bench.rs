//! Review → candidate → verdict → response.

use axum::http::StatusCode;
use serde_json::Value;
use shared_validation::{
    Accepted, Candidate, ClusterCrd, CurrentPolicy, Rulesets, Verdict, Written,
};

use crate::crds::CurrentCrds;
use crate::limits::Limit;
use crate::metrics::{Metrics, ViolationLabels};
use crate::refusal::Refusal;
use crate::response::{self, Review};
use crate::review::{Object, Request};

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
        request: &mut Request<Object<'_>>,
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
                message,
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
        let object = self
            .read(request.object.take(), "object")?
            .ok_or_else(|| Refusal::bad_request("`request.object` is missing: nothing to judge"))?;
        let old = self.read(request.old_object.take(), "oldObject")?;
        if request.operation == "UPDATE" && old.is_none() {
            return Err(Refusal::bad_request(
                "`request.oldObject` is missing: a change cannot be judged",
            ));
        }
        let crd = match self.crds.of(ruleset.as_ref()) {
            // The API server judges what was written, by that version's schema.
            ClusterCrd::Same if !request.is_as_written() => ClusterCrd::Unknown,
            crd => crd,
        };
        // Most have nothing to be said of, and this is the quicker way to tell.
        let passes = match question {
            Question::Stands => ruleset.passes(&object, old.as_ref(), crd),
            Question::Lacks => ruleset.is_complete(&object, crd),
        };
        if passes {
            if crd == ClusterCrd::Same {
                self.metrics.rust_only.inc();
            }
            return Ok(Review::pass(&request.uid));
        }
        let (object, old) = (Value::from(object), old.map(Value::from));
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

    fn read<'a>(
        &self,
        object: Option<Object<'a>>,
        name: &str,
    ) -> Result<Option<Written<'a>>, Refusal> {
        let read = object.map(Object::read).transpose();
        read.map_err(|error| {
            let problem = error.to_string();
            if problem.starts_with("recursion limit exceeded") {
                self.metrics.limited(Limit::Depth);
            }
            Refusal::bad_request(format!("`request.{name}` cannot be read: {problem}"))
        })
    }

    /// Counts what fired and logs a refusal: who, what kind, which rules; never the object.
    fn record(&self, request: &Request<Object<'_>>, verdict: &Verdict, review: &Review) {
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
