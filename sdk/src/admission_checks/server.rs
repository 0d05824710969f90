//! Server of the controller for the webhook in its Pod.

use std::fs::{Permissions, set_permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use lockstep_webhook::AdmissionCheckRequest;
use tokio::net::UnixListener;

use crate::admission_checks::{AdmissionCheck, CHECK, MAX_MESSAGE_BYTES};

/// Check of one kind.
pub(crate) struct CheckOfKind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) check: Arc<dyn AdmissionCheck>,
}

/// Listens on a Unix socket, and serves checks in the background until the process exits.
pub(crate) async fn serve(path: &Path, checks: Vec<CheckOfKind>) -> anyhow::Result<()> {
    // The directory is that of the certificates, which may not exist yet.
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // A process that has ended without a stop leaves its socket.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot replace {}", path.display()));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path)
        .with_context(|| format!("cannot listen on {} for admission checks", path.display()))?;
    // Both containers of the Pod run as the same user.
    set_permissions(path, Permissions::from_mode(0o600))
        .with_context(|| format!("cannot restrict the access to {}", path.display()))?;
    let routes = Router::new()
        .route(CHECK, post(check))
        .layer(DefaultBodyLimit::max(MAX_MESSAGE_BYTES))
        .with_state(Arc::new(checks));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%error, "admission checks are not served any more");
        }
    });
    Ok(())
}

async fn check(State(checks): State<Arc<Vec<CheckOfKind>>>, body: Bytes) -> Response {
    match result(&checks, &body).await {
        Ok(result) => ([(header::CONTENT_TYPE, "application/json")], result).into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
    }
}

/// Returns the result of the check that a request is for, as JSON.
async fn result(checks: &[CheckOfKind], body: &[u8]) -> Result<Vec<u8>, String> {
    let unreadable = |error: serde_json::Error| format!("the request cannot be read: {error}");
    let request: AdmissionCheckRequest = serde_json::from_slice(body).map_err(unreadable)?;
    let mut checks = checks.iter();
    let found = checks.find(|it| (it.group, it.kind) == (&request.group, &request.kind));
    let found = found.ok_or_else(|| {
        let kind = &request.kind;
        format!("the controller has no check of the kind {kind}")
    });
    let result = found?.check.check(&request).await?;
    serde_json::to_vec(&result).map_err(|error| error.to_string())
}
