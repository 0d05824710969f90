//! Review → candidate → verdict → response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::LengthLimitError;
use serde_json::Value;
use serde_json::value::RawValue;
use shared_validation::{Accepted, Candidate, CurrentPolicy, Rulesets, Verdict};

use crate::metrics::{Metrics, RequestLabels, ViolationLabels, WebhookLabels};
use crate::refusal::Refusal;
use crate::response::{self, Review};
use crate::review::{self, Request};

/// What one update carries at most: two objects of the API server's request limit (3 MiB) and the
/// envelope around them.
pub const DEFAULT_BODY_LIMIT_BYTES: usize = 7 * 1024 * 1024;

/// How long a request may take to arrive. The API server itself waits at most 30 s for the answer.
const ARRIVAL_DEADLINE: Duration = Duration::from_secs(10);

/// Judges reviews.
#[derive(Clone)]
pub struct Gate {
    rulesets: Rulesets,
    metrics: Metrics,
    body_limit_bytes: usize,
    policy: CurrentPolicy,
}

#[derive(Clone, Copy)]
enum Door {
    Validate,
    Mutate,
}

impl Door {
    fn name(self) -> &'static str {
        match self {
            Self::Validate => "/validate",
            Self::Mutate => "/mutate",
        }
    }
}

impl Gate {
    /// A gate that judges the kinds of `rulesets`.
    #[must_use]
    pub fn new(rulesets: Rulesets, metrics: Metrics) -> Self {
        Self {
            rulesets,
            metrics,
            body_limit_bytes: DEFAULT_BODY_LIMIT_BYTES,
            policy: CurrentPolicy::default(),
        }
    }

    /// The same, under a policy that may be replaced at any time.
    #[must_use]
    pub fn under(self, policy: CurrentPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same, refusing bodies of more than `limit` bytes.
    #[must_use]
    pub fn with_body_limit_bytes(self, limit: usize) -> Self {
        Self {
            body_limit_bytes: limit,
            ..self
        }
    }

    /// The HTTP routes: `POST /validate` and `POST /mutate`.
    ///
    /// # Guarantees
    ///
    /// A request that is no well-formed review of a registered kind is never answered with an allow.
    pub fn router(self) -> Router {
        let gate = Arc::new(self);
        let door = |door: Door| {
            post(
                move |State(gate): State<Arc<Self>>, request: HttpRequest| async move {
                    gate.enter(door, request).await
                },
            )
            .fallback(|| async { Refusal::method_not_allowed() })
        };
        Router::new()
            .route(Door::Validate.name(), door(Door::Validate))
            .route(Door::Mutate.name(), door(Door::Mutate))
            .fallback(|| async { Refusal::not_found() })
            .with_state(gate)
    }

    async fn enter(&self, door: Door, request: HttpRequest) -> Response {
        let started = Instant::now();
        let labels = WebhookLabels {
            webhook: door.name(),
        };
        let in_flight = self.metrics.in_flight.get_or_create_owned(&labels);
        in_flight.inc();
        let answer = self.answer(door, request).await;
        in_flight.dec();
        self.metrics
            .latency
            .get_or_create(&labels)
            .observe(started.elapsed().as_secs_f64());
        let response = match answer {
            Ok(review) => {
                let body = serde_json::to_vec(&review).expect("a review is JSON");
                ([(header::CONTENT_TYPE, "application/json")], body).into_response()
            }
            Err(refusal) => {
                tracing::warn!(
                    webhook = door.name(),
                    code = refusal.code.as_u16(),
                    message = refusal.message,
                    "refused a request that is no review"
                );
                refusal.into_response()
            }
        };
        let labels = RequestLabels {
            webhook: door.name(),
            code: response.status().as_u16(),
        };
        self.metrics.requests.get_or_create(&labels).inc();
        response
    }

    async fn answer(&self, door: Door, request: HttpRequest) -> Result<Review, Refusal> {
        let (parts, body) = request.into_parts();
        require_json(&parts.headers)?;
        let body = tokio::time::timeout(ARRIVAL_DEADLINE, self.collect(body))
            .await
            .map_err(|_| Refusal::timed_out())??;
        let request = review::read(&body)?;
        self.review(door, &request)
    }

    async fn collect(&self, body: Body) -> Result<Bytes, Refusal> {
        let limit = self.body_limit_bytes;
        to_bytes(body, limit).await.map_err(|error| {
            let too_large = std::error::Error::source(&error)
                .is_some_and(<dyn std::error::Error>::is::<LengthLimitError>);
            if too_large {
                Refusal::too_large(limit)
            } else {
                Refusal::bad_request(format!("the body broke off: {error}"))
            }
        })
    }

    fn review(&self, door: Door, request: &Request<'_>) -> Result<Review, Refusal> {
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
        let object = parse(request.object, "object")?
            .ok_or_else(|| Refusal::bad_request("`request.object` is missing: nothing to judge"))?;
        let old = parse(request.old_object, "oldObject")?;
        if request.operation == "UPDATE" && old.is_none() {
            return Err(Refusal::bad_request(
                "`request.oldObject` is missing: a change cannot be judged",
            ));
        }
        let accepted = old.as_ref().and_then(Accepted::read);
        let candidate = match &old {
            Some(old) => Candidate::update(&object, old).since(accepted.as_ref()),
            None => Candidate::create(&object),
        };
        let policy = self.policy.get();
        let verdict = ruleset.check(&candidate.under(&policy));
        Ok(match door {
            Door::Mutate => Review::additions(&request.uid, &verdict.additions),
            Door::Validate => {
                let review = Review::verdict(request, &verdict);
                self.record(request, &verdict, &review);
                review
            }
        })
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

fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Refusal::unsupported_media_type(content_type))
    }
}

fn parse(raw: Option<&RawValue>, name: &str) -> Result<Option<Value>, Refusal> {
    let Some(raw) = raw else { return Ok(None) };
    let value: Value = serde_json::from_str(raw.get()).map_err(|error| {
        Refusal::bad_request(format!("`request.{name}` cannot be read: {error}"))
    })?;
    Ok((!value.is_null()).then_some(value))
}
