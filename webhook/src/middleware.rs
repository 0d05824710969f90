//! Middleware around the endpoints: trace span, metrics, deadline and panic isolation.
//!
//! Each function takes a request's handling as a future or closure and returns it with one concern added. They do
//! not use the layers of tower for this, because these behave differently:
//!
//! - `tower_http`'s `TraceLayer` and `CatchPanicLayer` put the response body into a box of their own, which costs an
//!   allocation for each review.
//! - `tower`'s `Timeout` has the same time-out for all requests. Here, each request brings that of its client.
//! - `tower`'s `ConcurrencyLimit` counts requests while their bodies arrive, so that slow clients would shed the
//!   requests of others, and it releases a request whose client has gone although its thread still works on it. See
//!   [`ConcurrencyLimit`](crate::concurrency_limit::ConcurrencyLimit).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use jiff::SignedDuration;
use prometheus_client::metrics::gauge::Gauge;
use tracing::{Instrument, field};

use crate::admission::error::RequestError;
use crate::limits::Limit;
use crate::metrics::{Metrics, RequestLabels, WebhookLabels};

/// Runs the handling of a request in a trace span. The handler records the fields of the request in it.
pub(crate) async fn trace(
    route: &'static str,
    handling: impl Future<Output = Response>,
) -> Response {
    let span = tracing::info_span!(
        "admission",
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.route = route,
        http.response.status_code = field::Empty,
        uid = field::Empty,
        kind = field::Empty,
        operation = field::Empty,
        allowed = field::Empty,
        rules = field::Empty,
    );
    let response = handling.instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    response
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

/// Measures the handling of a request, counts it by its status code, and logs its error.
pub(crate) async fn measure<R: IntoResponse>(
    metrics: &Metrics,
    route: &'static str,
    handling: impl Future<Output = Result<R, RequestError>>,
) -> Response {
    let started = Instant::now();
    let labels = WebhookLabels { webhook: route };
    let in_flight = InFlight::enter(metrics.in_flight.get_or_create_owned(&labels));
    let result = handling.await;
    drop(in_flight);
    metrics
        .latency
        .get_or_create(&labels)
        .observe(started.elapsed().as_secs_f64());
    let response = match result {
        Ok(response) => response.into_response(),
        Err(error) => {
            tracing::warn!(
                webhook = route,
                code = error.code.as_u16(),
                message = error.message,
                "rejected a request"
            );
            error.into_response()
        }
    };
    let labels = RequestLabels {
        webhook: route,
        code: response.status().as_u16(),
    };
    metrics.requests.get_or_create(&labels).inc();
    response
}

/// Ends the handling of a request at its deadline.
pub(crate) async fn limit_time<R>(
    metrics: &Metrics,
    time_limit: Duration,
    handling: impl Future<Output = Result<R, RequestError>>,
) -> Result<R, RequestError> {
    tokio::time::timeout(time_limit, handling)
        .await
        .map_err(|_| {
            metrics.rejected(Limit::RequestTimeout);
            RequestError::too_slow()
        })?
}

/// Returns the time in which to answer: the client's time-out, less a tenth for the way back, but at most `max`.
pub(crate) fn time_limit(uri: &Uri, max: Duration) -> Duration {
    let parameters = uri.query().into_iter().flat_map(|query| query.split('&'));
    let timeout = parameters
        .filter_map(|pair| pair.strip_prefix("timeout="))
        .find_map(|text| Duration::try_from(text.parse::<SignedDuration>().ok()?).ok());
    timeout.map_or(max, |timeout| max.min(timeout * 9 / 10))
}

/// Runs a handler. A panic fails this request only.
pub(crate) fn catch_panic<R>(
    metrics: &Metrics,
    handler: impl FnOnce() -> Result<R, RequestError>,
) -> Result<R, RequestError> {
    catch_unwind(AssertUnwindSafe(handler)).unwrap_or_else(|_| {
        metrics.panics.inc();
        Err(RequestError::panicked())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_answered_before_its_timeout() {
        let most = Duration::from_secs(30);
        let deadline = |uri: &'static str| time_limit(&Uri::from_static(uri), most);
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
