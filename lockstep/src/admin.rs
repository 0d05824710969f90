//! The second port, plain HTTP: health and metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Binds the port and serves `/healthz`, `/readyz` and `/metrics` in the background.
///
/// `ready` says what is missing, or nothing.
pub(crate) async fn serve(
    address: SocketAddr,
    registry: Registry,
    ready: impl Fn() -> Result<(), &'static str> + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for health"))?;
    let registry = Arc::new(registry);
    let ready = Arc::new(ready);
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || async move { readiness(ready()) }))
        .route("/metrics", get(move || async move { metrics(&registry) }));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%error, "health and metrics are no longer served");
        }
    });
    Ok(())
}

fn readiness(ready: Result<(), &'static str>) -> impl IntoResponse {
    match ready {
        Ok(()) => (StatusCode::OK, "ok"),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing),
    }
}

fn metrics(registry: &Registry) -> impl IntoResponse + use<> {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, OPENMETRICS)], text),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(header::CONTENT_TYPE, "text/plain")],
            error.to_string(),
        ),
    }
}
