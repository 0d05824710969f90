//! HTTP server for health checks and metrics, on a port of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use lockstep_http_server::{Limits, Server};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prometheus text format, for clients that do not request `OpenMetrics`.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Maximum number of open connections. When exceeded, the longest-idle one is closed, or else the one with the
/// oldest incomplete request.
pub(crate) const MAX_CONNECTIONS: usize = 256;

/// Binds the port and serves `/healthz`, `/readyz` and the routes of `more` in the background, and `/metrics` if there
/// is a registry.
///
/// `ready` returns `Ok`, or an error that names what is missing.
pub(crate) async fn serve(
    address: SocketAddr,
    registry: Option<Arc<Registry>>,
    ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    more: Router,
) -> anyhow::Result<()> {
    let ready = Arc::new(ready);
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || async move { readiness(ready()) }))
        .merge(metrics_route(registry))
        .merge(more);
    listen(address, routes).await
}

/// Binds the port and serves only `/metrics` in the background.
pub(crate) async fn serve_metrics(
    address: SocketAddr,
    registry: Option<Arc<Registry>>,
) -> anyhow::Result<()> {
    listen(address, metrics_route(registry)).await
}

fn metrics_route(registry: Option<Arc<Registry>>) -> Router {
    let Some(registry) = registry else {
        return Router::new();
    };
    let serve = move |headers: HeaderMap| async move { metrics(&registry, &headers) };
    Router::new().route("/metrics", get(serve))
}

async fn listen(address: SocketAddr, routes: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for health checks and metrics"))?;
    let limits = Limits {
        max_connections: MAX_CONNECTIONS,
        ..Limits::default()
    };
    tokio::spawn(async move {
        // The server runs until the process exits.
        let (_stop, never) = watch::channel(false);
        let server = Server::http(routes, limits);
        server.serve(listener, never, Duration::ZERO).await;
    });
    Ok(())
}

fn readiness(ready: Result<(), String>) -> impl IntoResponse {
    match ready {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing),
    }
}

/// Returns the metrics in the format of the `Accept` header. Prometheus requests `OpenMetrics`; older tools
/// request no format.
pub(crate) fn metrics(registry: &Registry, headers: &HeaderMap) -> impl IntoResponse + use<> {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let is_open = accept.is_some_and(|accept| accept.contains("application/openmetrics-text"));
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) if !is_open => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, PLAIN)],
            without_openmetrics(&text),
        ),
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, OPENMETRICS)], text),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(header::CONTENT_TYPE, "text/plain")],
            error.to_string(),
        ),
    }
}

/// Converts `OpenMetrics` text to the older Prometheus text format. They differ in the metadata of a counter: in
/// the older format, its name has the suffix of its value, `_total`.
fn without_openmetrics(text: &str) -> String {
    let counters: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(word), Some(name), Some(rest)) if counters.contains(&name) => {
                plain.push_str(&format!("# {word} {name}_total {rest}\n"));
            }
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_metadata_has_the_suffix_of_the_value() {
        let open = "# HELP asked How often.\n# TYPE asked counter\nasked_total 1\n\
                    # HELP held How many.\n# TYPE held gauge\nheld 2\n# EOF\n";
        let plain = "# HELP asked_total How often.\n# TYPE asked_total counter\nasked_total 1\n\
                     # HELP held How many.\n# TYPE held gauge\nheld 2\n";
        assert_eq!(without_openmetrics(open), plain);
    }
}
