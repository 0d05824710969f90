//! HTTP endpoints of the webhook, from the request to the response.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use lockstep_http_server::ActiveRequest;
use lockstep_shared_validation::{CrdMatch, PolicyHandle, Validator, ValidatorRegistry};
use serde::Serialize;

use crate::admission::check::{Checks, RemoteChecks};
use crate::admission::error::RequestError;
use crate::admission::handler::{Handled, Handler, Mode, Pending};
use crate::body::{MemoryBudget, Reservation, parsed_size_estimate};
use crate::concurrency_limit::{ConcurrencyLimit, QUICK_BYTES, Step};
use crate::conversion;
use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;
use crate::middleware;

/// Admission and conversion webhook.
///
/// ```
/// use std::sync::Arc;
///
/// use lockstep_shared_validation::{ValidatedResource, Ruleset, ValidatorRegistry};
/// use lockstep_webhook::{Limits, Metrics, Webhook};
/// use prometheus_client::registry::Registry;
///
/// /// Returns the routes of a webhook for one kind.
/// fn routes<K: ValidatedResource>(registry: &mut Registry) -> axum::Router {
///     let ruleset = Ruleset::<K>::compile().expect("the rules compile");
///     let validators = ValidatorRegistry::default().register(Arc::new(ruleset));
///     let server = lockstep_http_server::Metrics::register(registry);
///     let metrics = Metrics::register(registry, server);
///     Webhook::new(validators, metrics, Limits::default()).into_router()
/// }
/// ```
#[derive(Clone)]
pub struct Webhook {
    handler: Handler,
    metrics: Metrics,
    limits: Limits,
    budget: MemoryBudget,
    /// Part of the memory budget that conversions may use.
    conversion_budget: MemoryBudget,
    concurrency: ConcurrencyLimit,
}

#[derive(Clone, Copy)]
enum Endpoint {
    Validate,
    Mutate,
    Convert,
}

/// Response of an endpoint as JSON, or the check that decides about it.
enum Responded {
    Encoded(Vec<u8>),
    Pending(Box<Pending>),
}

/// Response body of an endpoint.
struct EndpointResponse(Bytes);

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::Validate => "/validate",
            Self::Mutate => "/mutate",
            Self::Convert => "/convert",
        }
    }

    fn max_bytes(self, limits: &Limits) -> (usize, Limit) {
        match self {
            Self::Validate | Self::Mutate => (limits.max_request_bytes, Limit::MaxRequestBytes),
            Self::Convert => (limits.max_conversion_bytes, Limit::MaxConversionBytes),
        }
    }

    /// Returns the function that estimates the memory for the handling of a body.
    fn size_estimate(self) -> fn(&[u8]) -> usize {
        match self {
            Self::Validate | Self::Mutate => parsed_size_estimate,
            Self::Convert => conversion::size_estimate,
        }
    }
}

impl IntoResponse for EndpointResponse {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// Returns a response as JSON.
fn encoded(response: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(response).expect("a response is serializable as JSON")
}

impl Webhook {
    /// Creates a webhook that validates the kinds of `validators`.
    #[must_use]
    pub fn new(validators: ValidatorRegistry, metrics: Metrics, limits: Limits) -> Self {
        let budget = MemoryBudget::new(&limits, &metrics);
        Self {
            handler: Handler {
                validators,
                policy: PolicyHandle::default(),
                crd_status: Arc::new(|_| CrdMatch::Unknown),
                checks: None,
                metrics: metrics.clone(),
            },
            conversion_budget: budget.for_conversions(),
            budget,
            concurrency: ConcurrencyLimit::new(&limits, &metrics),
            metrics,
            limits,
        }
    }

    /// Sets the policy, which may be replaced at any time.
    #[must_use]
    pub fn with_policy(mut self, policy: PolicyHandle) -> Self {
        self.handler.policy = policy;
        self
    }

    /// Sets the source of the CRD status: whether the CRD of a kind in the cluster matches the compiled one. It is
    /// called for each request. Without a source, the CRD status is unknown.
    #[must_use]
    pub fn with_crd_status(
        mut self,
        crd_status: impl Fn(&dyn Validator) -> CrdMatch + Send + Sync + 'static,
    ) -> Self {
        self.handler.crd_status = Arc::new(crd_status);
        self
    }

    /// Sets checks of objects that the rules accept.
    #[must_use]
    pub fn with_checks(mut self, checks: Arc<dyn RemoteChecks>) -> Self {
        self.handler.checks = Some(Checks::new(checks));
        self
    }

    /// Returns the HTTP routes: `POST /validate`, `POST /mutate` and `POST /convert`.
    ///
    /// # Guarantees
    ///
    /// A request is allowed only if it is a well-formed `AdmissionReview` of a registered kind.
    pub fn into_router(self) -> Router {
        let webhook = Arc::new(self);
        let route = |endpoint: Endpoint| {
            post(
                move |State(webhook): State<Arc<Self>>, request: HttpRequest| async move {
                    webhook.serve(endpoint, request).await
                },
            )
            .fallback(|| async { RequestError::method_not_allowed() })
        };
        Router::new()
            .route(Endpoint::Validate.name(), route(Endpoint::Validate))
            .route(Endpoint::Mutate.name(), route(Endpoint::Mutate))
            .route(Endpoint::Convert.name(), route(Endpoint::Convert))
            .fallback(|| async { RequestError::not_found() })
            .with_state(webhook)
    }

    /// Serves one request: the endpoint, with the middleware around it.
    async fn serve(self: Arc<Self>, endpoint: Endpoint, request: HttpRequest) -> Response {
        let (parts, body) = request.into_parts();
        let time_limit = middleware::time_limit(&parts.uri, self.limits.request_timeout);
        let handling = self.handle(endpoint, &parts, body, time_limit);
        let handling = middleware::limit_time(&self.metrics, time_limit, handling);
        let handling = middleware::measure(&self.metrics, endpoint.name(), handling);
        middleware::trace(endpoint.name(), handling).await
    }

    /// Reads the body and responds to it, within the limits on memory and on concurrent requests.
    async fn handle(
        self: &Arc<Self>,
        endpoint: Endpoint,
        parts: &Parts,
        body: Body,
        time_limit: Duration,
    ) -> Result<EndpointResponse, RequestError> {
        // Read the whole body, even of a request that is going to be rejected: a client that gets a response
        // before it has sent the whole body may continue as if it had received none.
        let budget = match endpoint {
            Endpoint::Validate | Endpoint::Mutate => &self.budget,
            Endpoint::Convert => &self.conversion_budget,
        };
        let body = budget.read(body, endpoint.max_bytes(&self.limits)).await?;
        if let Some(request) = parts.extensions.get::<Arc<ActiveRequest>>() {
            request.mark_request_received();
        }
        require_json(&parts.headers)?;
        let webhook = Arc::clone(self);
        let respond = move |body: &[u8], step| {
            middleware::catch_panic(&webhook.metrics, || webhook.respond(endpoint, body, step))
        };
        let size = endpoint.size_estimate();
        let handling = self.concurrency.run(budget, body, size, respond);
        let (responded, reserved) = handling.await?;
        let body = match responded {
            Responded::Encoded(body) => body,
            // It is rare, and its future would make that of every request large.
            Responded::Pending(pending) => {
                encoded(&Box::pin(self.handler.complete(*pending, time_limit)).await)
            }
        };
        budget.response(body, reserved).map(EndpointResponse)
    }

    /// Decodes a body, validates or converts its objects, and returns the response, or `None` as [`Handler::handle`].
    fn respond(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        step: Step,
    ) -> Result<Option<Responded>, RequestError> {
        let mode = match endpoint {
            Endpoint::Validate => Mode::Validate,
            Endpoint::Mutate => Mode::Mutate,
            Endpoint::Convert => {
                let reserve = |bytes| self.reserve_for_object(body, bytes);
                let converted = conversion::convert(body, &self.handler.validators, reserve)?;
                return Ok(Some(Responded::Encoded(encoded(&converted))));
            }
        };
        let handled = self.handler.handle(mode, body, step)?;
        Ok(handled.map(|handled| match handled {
            Handled::Done(review) => Responded::Encoded(encoded(&review)),
            Handled::Pending(pending) => Responded::Pending(pending),
        }))
    }

    /// Reserves memory for an object of a conversion, in addition to the memory for its body. A small body needs little.
    fn reserve_for_object(
        &self,
        body: &[u8],
        bytes: usize,
    ) -> Result<Option<Reservation>, RequestError> {
        if body.len() <= QUICK_BYTES {
            return Ok(None);
        }
        let held = body.len() + conversion::size_estimate(body);
        self.conversion_budget.reserve_more(held, bytes).map(Some)
    }
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
    use std::iter;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex, mpsc};

    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use lockstep_shared_validation::{
        CompileError, CrdValidator, RuleInfo, ValidationRequest, ValidationResult, Validator,
    };
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;
    use crate::metrics::WebhookLabels;

    /// Kind with a rule that panics for some objects.
    struct Explosive(CrdValidator, Option<Compilation>, AtomicBool);

    type Compilation = Box<dyn Fn() + Send + Sync>;

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

        fn is_compiled(&self) -> bool {
            self.1.is_none() || self.2.load(Ordering::SeqCst)
        }

        fn ensure_compiled(&self) -> Result<(), &CompileError> {
            self.1.as_ref().expect("it is not compiled")();
            self.2.store(true, Ordering::SeqCst);
            Ok(())
        }

        fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
            assert_ne!(request.object["metadata"]["name"], "bomb");
            self.0.validate(request)
        }
    }

    fn explosive(compilation: Option<Compilation>) -> ValidatorRegistry {
        let crd = json!({"spec": {
            "group": "example.com",
            "names": {"kind": "Trap", "plural": "traps"},
            "versions": [{"name": "v1", "served": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }});
        let kind = CrdValidator::compile(&crd, "v1").expect("it compiles");
        ValidatorRegistry::default().register(Arc::new(Explosive(
            kind,
            compilation,
            AtomicBool::new(false),
        )))
    }

    async fn send(routes: &Router, name: &str, note: &str) -> StatusCode {
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
        let response = routes.clone().oneshot(request).await;
        let response = response.expect("an answer");
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20)
            .await
            .expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(status == 200, body["kind"] == "AdmissionReview");
        status
    }

    #[tokio::test]
    async fn a_panic_fails_one_request_and_is_counted() {
        let metrics = Metrics::unregistered();
        let routes =
            Webhook::new(explosive(None), metrics.clone(), Limits::default()).into_router();
        let long = "x".repeat(2 * QUICK_BYTES);
        for note in ["", &long] {
            assert_eq!(send(&routes, "bomb", note).await, 500);
            assert_eq!(send(&routes, "fine", note).await, 200);
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_first_review_of_a_kind_does_not_block_the_runtime() {
        let (sender, ended) = mpsc::channel();
        let ended = Mutex::new(ended);
        let validators = explosive(Some(Box::new(move || {
            let ended = ended.lock().expect("one review");
            let ended = ended.recv_timeout(Duration::from_secs(10));
            ended.expect("the runtime does something else in the meantime");
        })));
        let routes =
            Webhook::new(validators, Metrics::unregistered(), Limits::default()).into_router();
        let review = tokio::spawn(async move {
            let other = tokio::spawn(async move { sender.send(()) });
            let status = send(&routes, "fine", "").await;
            (status, other.await.expect("no panic"))
        });
        let (status, sent) = review.await.expect("no panic");
        assert_eq!((status, sent), (StatusCode::OK, Ok(())));
    }

    /// Each thread holds memory of its own.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn first_reviews_wait_without_threads() {
        let waiting = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let all_sent = Arc::new((Mutex::new(false), Condvar::new()));
        let compilation: Compilation = {
            let (waiting, most) = (Arc::clone(&waiting), Arc::clone(&most));
            let all_sent = Arc::clone(&all_sent);
            Box::new(move || {
                let now = waiting.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                let sent = all_sent.0.lock().expect("no panic");
                let limit = Duration::from_secs(10);
                drop(all_sent.1.wait_timeout_while(sent, limit, |sent| !*sent));
                waiting.fetch_sub(1, Ordering::SeqCst);
            })
        };
        let metrics = Metrics::unregistered();
        let webhook = Webhook::new(
            explosive(Some(compilation)),
            metrics.clone(),
            Limits::default(),
        );
        let routes = webhook.into_router();
        let review = || {
            let routes = routes.clone();
            tokio::spawn(async move { send(&routes, "fine", "").await })
        };
        let reviews: Vec<_> = iter::repeat_with(review).take(64).collect();
        let labels = WebhookLabels {
            webhook: "/validate",
        };
        while metrics.in_flight.get_or_create(&labels).get() < 64
            || waiting.load(Ordering::SeqCst) == 0
        {
            tokio::task::yield_now().await;
        }
        *all_sent.0.lock().expect("no panic") = true;
        all_sent.1.notify_all();
        for review in reviews {
            assert_eq!(review.await.expect("no panic"), StatusCode::OK);
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }
}
