//! Handling of an admission request: decode → validate → respond.

use std::sync::Arc;
use std::time::Duration;

use lockstep_shared_validation::{
    CrdMatch, LastValidated, PolicyHandle, RawObject, ValidationRequest, ValidationResult,
    Validator, ValidatorRegistry, Violation, probe,
};
use serde_json::Value;
use tracing::Span;

use crate::admission::check::{Checks, PendingCheck};
use crate::admission::error::RequestError;
use crate::admission::request::{self, AdmissionRequest, LazyObject};
use crate::admission::response::{self, AdmissionReview, Outcome, truncate};
use crate::concurrency_limit::Step;
use crate::metrics::{Metrics, ViolationLabels};

/// Function that returns the CRD status of a kind.
pub(crate) type CrdStatusSource = Arc<dyn Fn(&dyn Validator) -> CrdMatch + Send + Sync>;

/// Rulesets, policy and CRD status that requests are validated with.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) validators: ValidatorRegistry,
    pub(crate) policy: PolicyHandle,
    pub(crate) crd_status: CrdStatusSource,
    /// Checks of objects that the rules accept.
    pub(crate) checks: Option<Checks>,
    pub(crate) metrics: Metrics,
}

/// Response to a request, or the check that decides about it.
pub(crate) enum Handled {
    Done(Box<AdmissionReview>),
    Pending(Box<Pending>),
}

/// Request whose object the rules accept, and which a check decides about.
pub(crate) struct Pending {
    check: PendingCheck,
    request: AdmissionRequest<()>,
    result: ValidationResult,
}

/// Kind of answer that a request needs.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Validate the object.
    Validate,
    /// Return the defaults that the object lacks.
    Mutate,
}

impl Handler {
    /// Decodes a body, validates its object, and returns the response, unless a check decides about it.
    ///
    /// The result is `None` if the rules that the request needs are not compiled, and after the step that only compiles them.
    pub(crate) fn handle(
        &self,
        mode: Mode,
        body: &[u8],
        step: Step,
    ) -> Result<Option<Handled>, RequestError> {
        let mut request = request::parse(body)?;
        let ruleset = self
            .validators
            .get(&request.kind.group, &request.kind.kind)
            .filter(|ruleset| ruleset.version() == request.kind.version);
        let is_compiled = ruleset.is_none_or(|ruleset| ruleset.is_compiled());
        if let Some(ruleset) = ruleset
            && !is_compiled
            && step != Step::OnRuntime
        {
            // A use of rules that cannot be compiled panics, which is an internal error of this review.
            ruleset.ensure_compiled().ok();
        }
        match step {
            Step::OnRuntime if !is_compiled => return Ok(None),
            Step::CompileRules => return Ok(None),
            Step::OnRuntime | Step::OnThread => {}
        }
        let mut check = None;
        let outcome = match ruleset {
            Some(ruleset) => self.validate(mode, ruleset.as_ref(), &mut request, &mut check)?,
            None => Outcome::UnknownKind,
        };
        let Some(check) = check.filter(|_| outcome.is_accepted()) else {
            let review = self.respond(&request, &outcome);
            return Ok(Some(Handled::Done(Box::new(review))));
        };
        Ok(Some(Handled::Pending(Box::new(Pending {
            check,
            request: request.map(|_| ()),
            result: outcome.into_result(),
        }))))
    }

    /// Does a check, and returns the response.
    pub(crate) async fn complete(&self, pending: Pending, time_limit: Duration) -> AdmissionReview {
        let Pending {
            check,
            request,
            mut result,
        } = pending;
        check.add_to(&mut result, time_limit).await;
        self.respond(&request, &Outcome::Validated(result))
    }

    fn respond<T>(&self, request: &AdmissionRequest<T>, outcome: &Outcome) -> AdmissionReview {
        let review = AdmissionReview::from_outcome(request, outcome);
        if let Outcome::Validated(result) = outcome {
            self.record_metrics(request, result, &review);
        }
        record_span_fields(request, &review);
        review
    }

    /// Validates the object of a request, or computes the defaults that it lacks.
    fn validate(
        &self,
        mode: Mode,
        ruleset: &dyn Validator,
        request: &mut AdmissionRequest<LazyObject<'_>>,
        check: &mut Option<PendingCheck>,
    ) -> Result<Outcome, RequestError> {
        let is_write = match request.operation.as_str() {
            "CREATE" | "UPDATE" => true,
            "DELETE" | "CONNECT" => false,
            other => {
                return Err(RequestError::bad_request(format!(
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
            return Ok(Outcome::Allowed);
        }
        let object = parse_object(request.object.take(), "object")?
            .ok_or_else(|| RequestError::bad_request("`request.object` is missing but required"))?;
        let old = parse_object(request.old_object.take(), "oldObject")?;
        if request.operation == "UPDATE" && old.is_none() {
            return Err(RequestError::bad_request(
                "`request.oldObject` is missing; UPDATE needs it",
            ));
        }
        let crd = match (self.crd_status)(ruleset) {
            // The API server validates the object in the version of the user's request, by the schema of that
            // version, and not in the version that it converts the object to for the webhook.
            CrdMatch::Same if !request.is_unconverted() => CrdMatch::Unknown,
            crd => crd,
        };
        let policy = self.policy.get();
        // Fast path: most objects are valid and complete, and this check is cheaper.
        let passes = match mode {
            Mode::Validate => ruleset.is_trivially_valid(&object, old.as_ref(), crd, &policy),
            Mode::Mutate => ruleset.has_all_defaults(&object, old.as_ref(), crd),
        };
        if passes && crd == CrdMatch::Same {
            self.metrics.crd_validation_skipped.inc();
        }
        if passes && self.checks.is_none() {
            return Ok(Outcome::Allowed);
        }
        let checks = self.checks.as_ref().filter(|checks| {
            matches!(mode, Mode::Validate)
                && checks.are_wanted(&request.kind, &policy)
                && checks.concern(&request.kind, old.iter().chain([&object]))
        });
        if passes && checks.is_none() {
            return Ok(Outcome::Allowed);
        }
        let (object, old) = (Value::from(object), old.map(Value::from));
        if let Some(checks) = checks {
            *check = checks.of(&request.kind, &object, old.as_ref());
        }
        if passes {
            return Ok(Outcome::Allowed);
        }
        let last_validated = old.as_ref().and_then(LastValidated::from_status_of);
        let request = ValidationRequest::for_update(&object, old.as_ref(), last_validated.as_ref());
        let request = request.with_policy(&policy).with_crd_match(crd);
        Ok(match mode {
            Mode::Mutate => Outcome::Defaulted(ruleset.default_patch(&request)),
            Mode::Validate => Outcome::Validated(ruleset.validate(&request)),
        })
    }

    /// Counts violations and logs a denial: user, kind and rules, never the object.
    fn record_metrics<T>(
        &self,
        request: &AdmissionRequest<T>,
        result: &ValidationResult,
        review: &AdmissionReview,
    ) {
        for violation in result.errors.iter().chain(&result.audit_violations) {
            let labels = ViolationLabels {
                kind: request.kind.kind.clone(),
                rule: violation.rule.clone(),
                component: "webhook",
            };
            self.metrics.violations.get_or_create(&labels).inc();
        }
        // Every replica of the controller sends probes all the time.
        let is_probe = |violation: &Violation| violation.rule == probe::RULE;
        if !result.is_valid() && result.errors.iter().all(is_probe) {
            tracing::debug!(
                uid = request.uid,
                user = truncate(&request.user_info.username),
                kind = request.kind.kind,
                "denied an admission probe"
            );
        } else if !review.is_allowed() {
            tracing::info!(
                uid = request.uid,
                user = truncate(&request.user_info.username),
                kind = request.kind.kind,
                namespace = truncate(&request.namespace),
                name = truncate(&request.name),
                operation = request.operation,
                dry_run = request.dry_run,
                rules = response::rules(result.errors.iter()),
                "denied"
            );
        }
    }
}

fn parse_object<'a>(
    object: Option<LazyObject<'a>>,
    name: &str,
) -> Result<Option<RawObject<'a>>, RequestError> {
    let read = object.map(LazyObject::parse).transpose();
    read.map_err(|error| {
        RequestError::bad_request(format!("cannot parse `request.{name}`: {error}"))
    })
}

/// Records the request and the response in the current span, never the object.
fn record_span_fields<T>(request: &AdmissionRequest<T>, review: &AdmissionReview) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    // Spans stay in memory until they are exported, so a client must not be able to fill them.
    span.record("uid", truncate(&request.uid));
    span.record("kind", truncate(&request.kind.kind));
    span.record("operation", truncate(&request.operation));
    span.record("allowed", review.is_allowed());
    if let Some(rules) = review.fired_rules() {
        span.record("rules", rules);
    }
}
