//! `AdmissionReview` → validation request → validation result → response.

use axum::http::StatusCode;
use serde_json::Value;
use shared_validation::{
    CrdMatch, LastValidated, PolicyHandle, RawObject, ValidationRequest, ValidationResult,
    ValidatorRegistry, Violation, probe,
};

use crate::admission::crd_status::CrdStatusCache;
use crate::admission::error::RequestError;
use crate::admission::request::{AdmissionRequest, LazyObject};
use crate::admission::response;
use crate::admission::response::AdmissionReview;
use crate::limits::Limit;
use crate::metrics::{Metrics, ViolationLabels};

/// Rulesets, policy and CRD status that requests are validated with.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) validators: ValidatorRegistry,
    pub(crate) policy: PolicyHandle,
    pub(crate) crds: CrdStatusCache,
    pub(crate) metrics: Metrics,
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
    /// Answers one admission request.
    pub(crate) fn handle(
        &self,
        question: Mode,
        request: &mut AdmissionRequest<LazyObject<'_>>,
    ) -> Result<AdmissionReview, RequestError> {
        let ruleset = self
            .validators
            .get(&request.kind.group, &request.kind.kind)
            .filter(|ruleset| ruleset.version() == request.kind.version);
        let Some(ruleset) = ruleset else {
            let kind = &request.kind;
            let message = format!(
                "no ruleset is registered for {}/{} {}; the webhook configuration must match registered kinds only",
                kind.group, kind.version, kind.kind
            );
            return Ok(AdmissionReview::deny(
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
            return Ok(AdmissionReview::allow(&request.uid));
        }
        let object = self
            .parse(request.object.take(), "object")?
            .ok_or_else(|| RequestError::bad_request("`request.object` is missing but required"))?;
        let old = self.parse(request.old_object.take(), "oldObject")?;
        if request.operation == "UPDATE" && old.is_none() {
            return Err(RequestError::bad_request(
                "`request.oldObject` is missing; UPDATE needs it",
            ));
        }
        let crd = match self.crds.get(ruleset.as_ref()) {
            // The API server validates the object in the version of the user's request, by the schema of that
            // version, and not in the version that it converts the object to for the webhook.
            CrdMatch::Same if !request.is_stored_version() => CrdMatch::Unknown,
            crd => crd,
        };
        // Fast path: most objects are valid and complete, and this check is cheaper.
        let passes = match question {
            Mode::Validate => ruleset.is_trivially_valid(&object, old.as_ref(), crd),
            Mode::Mutate => ruleset.has_all_defaults(&object, crd),
        };
        if passes {
            if crd == CrdMatch::Same {
                self.metrics.crd_validation_skipped.inc();
            }
            return Ok(AdmissionReview::allow(&request.uid));
        }
        let (object, old) = (Value::from(object), old.map(Value::from));
        let last_validated = old.as_ref().and_then(LastValidated::from_status_of);
        let candidate =
            ValidationRequest::for_update(&object, old.as_ref(), last_validated.as_ref());
        let policy = self.policy.get();
        let candidate = candidate.with_policy(&policy).with_crd_match(crd);
        Ok(match question {
            Mode::Mutate => {
                AdmissionReview::patch(&request.uid, &ruleset.default_patch(&candidate))
            }
            Mode::Validate => {
                let result = ruleset.validate(&candidate);
                let review = AdmissionReview::from_result(request, &result);
                self.record_metrics(request, &result, &review);
                review
            }
        })
    }

    fn parse<'a>(
        &self,
        object: Option<LazyObject<'a>>,
        name: &str,
    ) -> Result<Option<RawObject<'a>>, RequestError> {
        let read = object.map(LazyObject::parse).transpose();
        read.map_err(|error| {
            let problem = error.to_string();
            if problem.starts_with("recursion limit exceeded") {
                self.metrics.rejected(Limit::Depth);
            }
            RequestError::bad_request(format!("cannot parse `request.{name}`: {problem}"))
        })
    }

    /// Counts violations and logs a denial: user, kind and rules, never the object.
    fn record_metrics(
        &self,
        request: &AdmissionRequest<LazyObject<'_>>,
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
                user = request.user_info.username,
                kind = request.kind.kind,
                "denied an admission probe"
            );
        } else if !review.is_allowed() {
            tracing::info!(
                uid = request.uid,
                user = request.user_info.username,
                kind = request.kind.kind,
                namespace = request.namespace,
                name = request.name,
                operation = request.operation,
                dry_run = request.dry_run,
                rules = response::rules(result.errors.iter()),
                "denied"
            );
        }
    }
}
