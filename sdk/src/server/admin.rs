//! Endpoints for administrators on the health port: debug information and manual reconciliations. They require a
//! bearer token.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use lockstep_controller::{ControllerRegistry, Metrics};
use serde_json::json;
use subtle::ConstantTimeEq;

/// Option for the administrators' endpoints.
#[derive(clap::Args)]
#[command(next_help_heading = "Administration")]
pub(crate) struct AdminArgs {
    /// File with the bearer token for the administrators' endpoints: `GET /debug` lists queues and disconnected
    /// watches, and `POST /enqueue/CONTROLLER/NAMESPACE/NAME` triggers a reconciliation. The file is read on every
    /// request. Default: the endpoints are disabled.
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
}

impl AdminArgs {
    /// Returns the routes of the endpoints; none if no token file is set.
    pub(crate) fn routes(&self, directory: &ControllerRegistry, metrics: &Metrics) -> Router {
        let Some(file) = self.admin_token_file.clone() else {
            return Router::new();
        };
        let file = Arc::new(file);
        let authenticate = move |request: Request, next: Next| {
            let file = Arc::clone(&file);
            async move {
                match error_response(&file, &request) {
                    Some(error) => error,
                    None => next.run(request).await,
                }
            }
        };
        let (registry, metrics) = (directory.clone(), metrics.clone());
        let debug = move || async move {
            let listing = json!({"queues": registry.queues(), "watches_down": metrics.disconnected_watches()});
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, format!("{listing:#}\n"))
        };
        let (namespaced, plain) = (directory.clone(), directory.clone());
        let in_namespace =
            move |Path((controller, namespace, name)): Path<(String, String, String)>| async move {
                enqueue(&namespaced, &controller, Some(&namespace), &name)
            };
        let in_none = move |Path((controller, name)): Path<(String, String)>| async move {
            enqueue(&plain, &controller, None, &name)
        };
        Router::new()
            .route("/debug", get(debug))
            .route(
                "/enqueue/{controller}/{namespace}/{name}",
                post(in_namespace),
            )
            .route("/enqueue/{controller}/{name}", post(in_none))
            .route_layer(from_fn(authenticate))
    }
}

fn enqueue(
    directory: &ControllerRegistry,
    controller: &str,
    namespace: Option<&str>,
    name: &str,
) -> (StatusCode, String) {
    match directory.enqueue(controller, namespace, name) {
        Ok(()) => (StatusCode::ACCEPTED, "enqueued\n".to_owned()),
        Err(error) => (StatusCode::NOT_FOUND, format!("{error}\n")),
    }
}

/// Returns the error response for a request without a valid token, or `None` if the token is valid.
fn error_response(file: &PathBuf, request: &Request) -> Option<Response> {
    let token = match fs::read_to_string(file) {
        Ok(token) if !token.trim().is_empty() => token,
        Ok(_) => return Some(unavailable("the token file is empty")),
        Err(error) => {
            tracing::error!(%error, file = %file.display(), "cannot read the admin token file");
            return Some(unavailable("the token file cannot be read"));
        }
    };
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let is_it = shown.is_some_and(|shown| bool::from(shown.ct_eq(token.trim().as_bytes())));
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let unauthorized = || {
        (
            StatusCode::UNAUTHORIZED,
            challenge,
            "missing or invalid bearer token\n",
        )
            .into_response()
    };
    (!is_it).then(unauthorized)
}

fn unavailable(why: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}
