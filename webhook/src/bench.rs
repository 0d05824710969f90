//! `AdmissionReview` → validation request → validation result → response.

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

/// Rulesets, policy and CRD status that requests are validated with.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) rulesets: Rulesets,
    pub(crate) policy: CurrentPolicy,
    pub(crate) crds: CurrentCrds,
    pub(crate) metrics: Metrics,
}

/// Kind of answer that a request needs.
#[derive(Clone, Copy)]
pub(crate) enum Question {
    /// Validate the object.
    Stands,
    /// Return the defaults that the object lacks.
    Lacks,
}

impl Bench {
    /// Answers one admission request.
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
                "no ruleset is registered for {}/{} {}; the webhook configuration must match registered kinds only",
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
                    "`request.operation` is `{other}`; expected CREATE, UPDATE, DELETE or CONNECT"
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
            .ok_or_else(|| Refusal::bad_request("`request.object` is missing but required"))?;
        let old = self.read(request.old_object.take(), "oldObject")?;
        if request.operation == "UPDATE" && old.is_none() {
            return Err(Refusal::bad_request(
                "`request.oldObject` is missing; UPDATE needs it",
            ));
        }
        let crd = match self.crds.of(ruleset.as_ref()) {
            // The API server validates the object in the version of the user's request, by the schema of that
            // version, and not in the version that it converts the object to for the webhook.
            ClusterCrd::Same if !request.is_as_written() => ClusterCrd::Unknown,
            crd => crd,
        };
        // Fast path: most objects are valid and complete, and this check is cheaper.
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
            Refusal::bad_request(format!("cannot parse `request.{name}`: {problem}"))
        })
    }

    /// Counts violations and logs a denial: user, kind and rules, never the object.
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
                "denied"
            );
        }
    }
}
