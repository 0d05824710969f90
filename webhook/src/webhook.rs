//! HTTP endpoints of the webhook: request → validation → response, with limits, metrics and tracing.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_server::ActiveRequest;
use jiff::SignedDuration;
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use shared_validation::{PolicyHandle, ValidatorRegistry};
use tokio::sync::Semaphore;
use tracing::{Instrument, Span, field};

use crate::admission::crd_status::CrdStatusCache;
use crate::admission::error::RequestError;
use crate::admission::handler::{Handler, Mode};
use crate::admission::request;
use crate::admission::request::AdmissionRequest;
use crate::admission::response::AdmissionReview;
use crate::body::{BufferedBody, MemoryBudget};
use crate::conversion::{self, ConversionReviewResponse};
use crate::limits::{Limit, Limits};
use crate::metrics::{Metrics, RequestLabels, WebhookLabels};

/// Largest request that is validated on the async runtime's own threads. Larger ones would block other requests for
/// too long, and run on the blocking thread pool.
const QUICK_BYTES: usize = 64 << 10;

/// Maximum length of an object name in Kubernetes.
const MAX_NAME_BYTES: usize = 253;

/// Admission and conversion webhook.
#[derive(Clone)]
pub struct Webhook {
    bench: Handler,
    metrics: Metrics,
    limits: Limits,
    room: MemoryBudget,
    reviews: Arc<Semaphore>,
    /// Threads for large requests. More threads than cores would not finish them sooner, and each thread holds
    /// memory of its own.
    threads: Arc<Semaphore>,
}

#[derive(Clone, Copy)]
enum Endpoint {
    Validate,
    Mutate,
    Convert,
}

/// Response body of an endpoint.
#[derive(Serialize)]
#[serde(untagged)]
enum EndpointResponse {
    Review(AdmissionReview),
    Converted(ConversionReviewResponse),
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::Validate => "/validate",
            Self::Mutate => "/mutate",
            Self::Convert => "/convert",
        }
    }
}

/// Request counted as in flight, until it is answered or its client has gone.
struct InFlight(Gauge);

impl InFlight {
    fn enter(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Webhook {
    /// Creates a webhook that validates the kinds of `rulesets`.
    #[must_use]
    pub fn new(validators: ValidatorRegistry, metrics: Metrics, limits: Limits) -> Self {
        Self {
            bench: Handler {
                validators,
                policy: PolicyHandle::default(),
                crds: CrdStatusCache::default(),
                metrics: metrics.clone(),
            },
            room: MemoryBudget::new(&limits, &metrics),
            reviews: Arc::new(Semaphore::new(
                limits.max_requests_inflight.min(Semaphore::MAX_PERMITS),
            )),
            threads: Arc::new(Semaphore::new(threads())),
            metrics,
            limits,
        }
    }

    /// Sets the policy, which may be replaced at any time.
    #[must_use]
    pub fn with_policy(mut self, policy: PolicyHandle) -> Self {
        self.bench.policy = policy;
        self
    }

    /// Sets the source of the CRD status: whether the CRDs of the cluster match the compiled ones.
    #[must_use]
    pub fn with_crd_status(mut self, crds: CrdStatusCache) -> Self {
        self.bench.crds = crds;
        self
    }

    /// Returns the HTTP routes: `POST /validate`, `POST /mutate` and `POST /convert`.
    ///
    /// # Guarantees
    ///
    /// A request is allowed only if it is a well-formed `AdmissionReview` of a registered kind.
    pub fn into_router(self) -> Router {
        let gate = Arc::new(self);
        let door = |door: Endpoint| {
            post(
                move |State(gate): State<Arc<Self>>, request: HttpRequest| async move {
                    gate.traced(door, request).await
                },
            )
            .fallback(|| async { RequestError::method_not_allowed() })
        };
        Router::new()
            .route(Endpoint::Validate.name(), door(Endpoint::Validate))
            .route(Endpoint::Mutate.name(), door(Endpoint::Mutate))
            .route(Endpoint::Convert.name(), door(Endpoint::Convert))
            .fallback(|| async { RequestError::not_found() })
            .with_state(gate)
    }

    async fn traced(self: &Arc<Self>, door: Endpoint, request: HttpRequest) -> Response {
        let span = tracing::info_span!(
            "admission",
            otel.kind = "server",
            otel.status_code = field::Empty,
            http.route = door.name(),
            http.response.status_code = field::Empty,
            uid = field::Empty,
            kind = field::Empty,
            operation = field::Empty,
            allowed = field::Empty,
            rules = field::Empty,
        );
        let response = self.measured(door, request).instrument(span.clone()).await;
        let status = response.status();
        span.record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
        response
    }

    async fn measured(self: &Arc<Self>, door: Endpoint, request: HttpRequest) -> Response {
        let started = Instant::now();
        let labels = WebhookLabels {
            webhook: door.name(),
        };
        let in_flight = InFlight::enter(self.metrics.in_flight.get_or_create_owned(&labels));
        let answer = self.handle(door, request).await;
        drop(in_flight);
        self.metrics
            .latency
            .get_or_create(&labels)
            .observe(started.elapsed().as_secs_f64());
        let response = match answer {
            Ok(answer) => {
                let body = serde_json::to_vec(&answer).expect("a response is serializable as JSON");
                ([(header::CONTENT_TYPE, "application/json")], body).into_response()
            }
            Err(refusal) => {
                tracing::warn!(
                    webhook = door.name(),
                    code = refusal.code.as_u16(),
                    message = refusal.message,
                    "rejected a request"
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

    async fn handle(
        self: &Arc<Self>,
        door: Endpoint,
        request: HttpRequest,
    ) -> Result<EndpointResponse, RequestError> {
        let (parts, body) = request.into_parts();
        let deadline = deadline(&parts.uri, self.limits.request_timeout);
        let answer = async {
            let most = match door {
                Endpoint::Validate | Endpoint::Mutate => self.limits.max_request_bytes,
                Endpoint::Convert => self.limits.max_conversion_bytes,
            };
            // Read the whole body, even of a request that is going to be rejected: a client that gets a response
            // before it has sent the whole body may continue as if it had received none.
            let received = self.room.read(body, most).await?;
            if let Some(request) = parts.extensions.get::<Arc<ActiveRequest>>() {
                request.mark_request_received();
            }
            require_json(&parts.headers)?;
            self.run_handler(door, received).await
        };
        tokio::time::timeout(deadline, answer).await.map_err(|_| {
            self.metrics.rejected(Limit::Request);
            RequestError::too_slow()
        })?
    }

    /// Handles a body within the limits on concurrent requests and on memory.
    async fn run_handler(
        self: &Arc<Self>,
        door: Endpoint,
        mut received: BufferedBody,
    ) -> Result<EndpointResponse, RequestError> {
        let at_work = Arc::clone(&self.reviews).try_acquire_owned().map_err(|_| {
            self.metrics.rejected(Limit::RequestsInflight);
            RequestError::overloaded()
        })?;
        if received.bytes.len() <= QUICK_BYTES {
            return self.catch_panic(door, &received.bytes);
        }
        self.room.reserve_for_parse(&mut received)?;
        let threads = Arc::clone(&self.threads).acquire_owned().await;
        let thread = threads.map_err(|_| RequestError::overloaded())?;
        let gate = Arc::clone(self);
        let span = Span::current();
        // The thread cannot be cancelled: it counts against the limits until it ends, even if the client has gone.
        let judging = tokio::task::spawn_blocking(move || {
            let answer = span.in_scope(|| gate.catch_panic(door, &received.bytes));
            drop((received, at_work, thread));
            answer
        });
        judging
            .await
            .unwrap_or_else(|_| Err(RequestError::panicked()))
    }

    /// Handles a body. A panic fails this request only.
    fn catch_panic(&self, door: Endpoint, body: &[u8]) -> Result<EndpointResponse, RequestError> {
        let reviewed = |question: Mode| {
            let mut request = request::parse(body)?;
            let review = self.bench.handle(question, &mut request)?;
            record_span_fields(&request, &review);
            Ok(EndpointResponse::Review(review))
        };
        let answer = catch_unwind(AssertUnwindSafe(|| match door {
            Endpoint::Validate => reviewed(Mode::Validate),
            Endpoint::Mutate => reviewed(Mode::Mutate),
            Endpoint::Convert => {
                conversion::convert(body, &self.bench.validators).map(EndpointResponse::Converted)
            }
        }));
        answer.unwrap_or_else(|_| {
            self.metrics.panics.inc();
            Err(RequestError::panicked())
        })
    }
}

fn threads() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(1, NonZeroUsize::get).max(4)
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

/// Truncates a text to the maximum length of a name.
fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME_BYTES)]
}

/// Returns the time in which to answer: the client's time-out, less a tenth for the way back, but at most `most`.
fn deadline(uri: &Uri, most: Duration) -> Duration {
    let named = uri.query().into_iter().flat_map(|query| query.split('&'));
    let named = named
        .filter_map(|pair| pair.strip_prefix("timeout="))
        .find_map(|text| Duration::try_from(text.parse::<SignedDuration>().ok()?).ok());
    named.map_or(most, |named| most.min(named * 9 / 10))
}

fn require_json(headers: &HeaderMap) -> Result<(), RequestError> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(RequestError::unsupported_media_type(content_type))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use serde_json::{Value, json};
    use shared_validation::{
        CrdValidator, RuleInfo, ValidationRequest, ValidationResult, Validator,
    };
    use tower::ServiceExt;

    use super::*;

    /// Kind with a rule that panics for some objects.
    struct Explosive(CrdValidator);

    impl Validator for Explosive {
        fn group(&self) -> &str {
            self.0.group()
        }

        fn version(&self) -> &str {
            self.0.version()
        }

        fn kind(&self) -> &str {
            self.0.kind()
        }

        fn crd(&self) -> &Value {
            self.0.crd()
        }

        fn rules(&self) -> Vec<RuleInfo> {
            self.0.rules()
        }

        fn transition_fields(&self) -> &BTreeSet<String> {
            self.0.transition_fields()
        }

        fn validate(&self, candidate: &ValidationRequest<'_>) -> ValidationResult {
            assert_ne!(candidate.object["metadata"]["name"], "bomb");
            self.0.validate(candidate)
        }
    }

    fn explosive() -> ValidatorRegistry {
        let crd = json!({"spec": {
            "group": "example.com",
            "names": {"kind": "Trap", "plural": "traps"},
            "versions": [{"name": "v1", "served": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }});
        let kind = CrdValidator::compile(&crd, "v1").expect("it compiles");
        ValidatorRegistry::default().register(Arc::new(Explosive(kind)))
    }

    async fn ask(routes: &Router, name: &str, note: &str) -> StatusCode {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u",
                "operation": "CREATE",
                "kind": {"group": "example.com", "version": "v1", "kind": "Trap"},
                "object": {"metadata": {"name": name, "annotations": {"note": note}}},
            },
        });
        let request = HttpRequest::post("/validate")
            .header("content-type", "application/json")
            .body(Body::from(review.to_string()))
            .expect("a request");
        let answer = routes.clone().oneshot(request).await;
        let answer = answer.expect("an answer");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(status == 200, body["kind"] == "AdmissionReview");
        status
    }

    #[tokio::test]
    async fn a_panic_fails_one_request_and_is_counted() {
        let metrics = Metrics::unregistered();
        let routes = Webhook::new(explosive(), metrics.clone(), Limits::default()).into_router();
        let long = "x".repeat(2 * QUICK_BYTES);
        for note in ["", &long] {
            assert_eq!(ask(&routes, "bomb", note).await, 500);
            assert_eq!(ask(&routes, "fine", note).await, 200);
        }
        assert_eq!(metrics.panics.get(), 2);
        assert_eq!(
            metrics
                .in_flight
                .get_or_create(&WebhookLabels {
                    webhook: "/validate"
                })
                .get(),
            0
        );
    }

    #[test]
    fn the_client_is_answered_before_its_timeout() {
        let most = Duration::from_secs(30);
        let deadline = |uri: &'static str| deadline(&Uri::from_static(uri), most);
        assert_eq!(deadline("/validate?timeout=10s"), Duration::from_secs(9));
        assert_eq!(deadline("/validate?a=b&timeout=1m0s"), most);
        for other in [
            "/validate",
            "/validate?timeout=",
            "/validate?timeout=-1s",
            "/validate?timeout=x",
        ] {
            assert_eq!(deadline(other), most, "{other}");
        }
    }
}
