//! Metrics over HTTPS, for clients that the API server has authenticated and authorized.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kube::client::Body;
use kube::{Client, Config};
use lockstep_http_server::{CertWatcher, Limits, Server, ServerTls};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::server::delegated_auth::{Decision, DelegatedAuth};
use crate::server::health::{MAX_CONNECTIONS, metrics};

/// Time-out of a request for the metrics of the webhook, which runs in the same Pod.
const WEBHOOK_DEADLINE: Duration = Duration::from_secs(5);

/// Binds the port and serves `/metrics` in the background, and `/metrics/webhook` if the URL of the webhook's metrics
/// is known. Until the directory contains a certificate, no connection is accepted.
pub(crate) async fn serve(
    address: SocketAddr,
    certificates: &Path,
    registry: Arc<Registry>,
    webhook: Option<Uri>,
    client: Client,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for metrics"))?;
    let own = move |headers: HeaderMap| async move { metrics(&registry, &headers) };
    let mut routes = Router::new().route("/metrics", get(own));
    if let Some(url) = webhook {
        let mut config = Config::new(url);
        config.default_retry = false;
        let webhook = Client::try_from(config).context("cannot reach the webhook")?;
        let forward = move |headers: HeaderMap| forward(webhook, headers);
        routes = routes.route("/metrics/webhook", get(forward));
    }
    let auth = Arc::new(DelegatedAuth::new(client));
    let routes = routes.layer(from_fn_with_state(auth, authorize));
    let keys = CertWatcher::new(certificates);
    // The webhook reports the same certificate in its metrics.
    let unused = lockstep_http_server::Metrics::register(&mut Registry::default());
    tokio::spawn(Arc::clone(&keys).run(unused.clone()));
    let tls = Arc::new(ServerTls::new(keys).context("cannot set up TLS")?);
    let limits = Limits {
        max_connections: MAX_CONNECTIONS,
        ..Limits::default()
    };
    tokio::spawn(async move {
        // The server runs until the process exits.
        let (_stop, never) = watch::channel(false);
        let server = Server::new(routes, tls, limits, unused);
        server.serve(listener, never, Duration::ZERO).await;
    });
    Ok(())
}

/// Passes on requests whose bearer token the API server accepts.
async fn authorize(
    State(auth): State<Arc<DelegatedAuth>>,
    request: Request,
    next: Next,
) -> Response {
    let decision = match bearer_token(request.headers()) {
        Some(token) => auth.decide(token).await,
        None => Ok(Decision::Unauthenticated),
    };
    match decision {
        Ok(Decision::Allowed) => next.run(request).await,
        Ok(Decision::Unauthenticated) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            let message = "missing or invalid bearer token\n";
            (StatusCode::UNAUTHORIZED, challenge, message).into_response()
        }
        Ok(Decision::Forbidden) => {
            let message = "the user of the token has no right to `get` the path `/metrics`\n";
            (StatusCode::FORBIDDEN, message).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("Bearer") && !token.is_empty()).then_some(token)
}

/// Requests the metrics of the webhook, in the format that the client requests, and without its token.
async fn forward(webhook: Client, headers: HeaderMap) -> Response {
    let mut request = axum::http::Request::get("/metrics");
    if let Some(format) = headers.get(header::ACCEPT) {
        request = request.header(header::ACCEPT, format);
    }
    let Ok(request) = request.body(Body::empty()) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    match timeout(WEBHOOK_DEADLINE, webhook.send(request)).await {
        Ok(Ok(answer)) => answer.map(axum::body::Body::new).into_response(),
        Ok(Err(_)) | Err(_) => {
            (StatusCode::BAD_GATEWAY, "the webhook does not answer\n").into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_is_a_credential() {
        for (value, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic abc", None),
            ("abc", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a value"));
            assert_eq!(bearer_token(&headers), expected, "{value}");
        }
        assert_eq!(bearer_token(&HeaderMap::new()), None);
    }
}
