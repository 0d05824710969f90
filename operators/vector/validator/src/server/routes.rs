//! Request → Vector → response.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use lockstep_http_server::ActiveRequest;
use subtle::ConstantTimeEq;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::command::{Ended, Program, Whole};
use crate::log_tail::LogTail;
use crate::outcome::Outcome;
use crate::protocol::{
    Answer, Configuration, HEALTH, MAX_BODY_BYTES, MAX_SCHEMA_BYTES, MAX_VERSION_BYTES, READY,
    SCHEMA, VALIDATE, VERSION,
};

/// Time-out of the body of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Beginning of the names of the directories of configurations.
const PREFIX: &str = "configuration-";

/// Everything that requests share.
pub(crate) struct State {
    /// File with the token.
    pub(crate) token: PathBuf,
    /// Directory below which each configuration gets a directory of its own.
    pub(crate) work: PathBuf,
    pub(crate) program: Program,
    pub(crate) arguments: Vec<OsString>,
    /// One permit for each process of Vector.
    pub(crate) running: Semaphore,
    /// One permit for each request that runs or waits.
    pub(crate) admitted: Semaphore,
}

/// Returns the routes. Only the probes need no token.
pub(crate) fn of(state: Arc<State>) -> Router {
    let authenticated = Arc::clone(&state);
    let authenticate = move |request: Request, next: Next| {
        let state = Arc::clone(&authenticated);
        async move {
            match state.unauthorized(&request) {
                Some(failure) => failure.into_response(),
                None => next.run(request).await,
            }
        }
    };
    let (validating, printing, probed) = (Arc::clone(&state), Arc::clone(&state), state);
    let validate = move |request: Request| {
        let state = Arc::clone(&validating);
        async move {
            state
                .validate(request)
                .await
                .unwrap_or_else(Failure::into_response)
        }
    };
    let print = move |argument: &'static str, content_type, max_bytes| {
        let state = Arc::clone(&printing);
        move || async move {
            let printed = state.printed(argument, content_type, max_bytes).await;
            printed.unwrap_or_else(Failure::into_response)
        }
    };
    let schema = print("generate-schema", "application/json", MAX_SCHEMA_BYTES);
    let version = print("--version", "text/plain", MAX_VERSION_BYTES);
    let ready = move || {
        let is_ready = probed.program.exists();
        async move {
            if is_ready {
                (StatusCode::OK, "ready\n")
            } else {
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the program `vector` was not found\n",
                )
            }
        }
    };
    Router::new()
        .route(VALIDATE, post(validate))
        .route(SCHEMA, get(schema))
        .route(VERSION, get(version))
        .route_layer(from_fn(authenticate))
        .route(HEALTH, get(|| async { "ok\n" }))
        .route(READY, get(ready))
}

impl State {
    /// Returns the response to a request without the token. The body of such a request is not read.
    fn unauthorized(&self, request: &Request) -> Option<Failure> {
        let token = match std::fs::read_to_string(&self.token) {
            Ok(token) if !token.is_empty() => token,
            Ok(_) => return Some(failure(StatusCode::SERVICE_UNAVAILABLE, "no token")),
            Err(error) => {
                tracing::error!(%error, file = %self.token.display(), "cannot read the token");
                return Some(failure(StatusCode::SERVICE_UNAVAILABLE, "no token"));
            }
        };
        let shown = request.headers().get(header::AUTHORIZATION);
        let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let is_it = shown.is_some_and(|shown| bool::from(shown.ct_eq(token.as_bytes())));
        (!is_it).then(|| failure(StatusCode::UNAUTHORIZED, "missing or invalid bearer token"))
    }

    async fn validate(&self, request: Request) -> Result<Response, Failure> {
        let _admitted = self.admit()?;
        let configuration = read(request).await?;
        let _running = self.running.acquire().await;
        let directory = TempDir::with_prefix_in(PREFIX, &self.work);
        let directory = directory.and_then(|directory| {
            write(directory.path(), &configuration)?;
            Ok(directory)
        });
        let directory = directory.map_err(|error| {
            tracing::error!(%error, "cannot write a configuration");
            failure(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the configuration cannot be written",
            )
        })?;
        let mut log = LogTail::default();
        let args = self.arguments.iter().map(OsString::as_os_str);
        let args = args.chain([OsStr::new("--config-dir"), directory.path().as_os_str()]);
        let started = Instant::now();
        let ended = self.program.run(args, &mut log, true).await;
        let ended = ended.map_err(|error| self.not_run(&error))?;
        let answer = answer(&ended, log);
        tracing::info!(
            outcome = ?answer.outcome,
            exit_code = answer.exit_code,
            milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "validated a configuration"
        );
        let json = serde_json::to_string(&answer);
        let json = json.map_err(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, "no answer"))?;
        Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
    }

    /// Returns what Vector prints with an argument.
    async fn printed(
        &self,
        argument: &str,
        content_type: &'static str,
        max_bytes: usize,
    ) -> Result<Response, Failure> {
        let _admitted = self.admit()?;
        let _running = self.running.acquire().await;
        let mut printed = Whole {
            bytes: Vec::new(),
            max: max_bytes,
        };
        let ended = self.program.run([argument], &mut printed, false);
        let ended = ended.await.map_err(|error| self.not_run(&error))?;
        match ended {
            Ended::Status(status) if status.success() => {
                let content_type = [(header::CONTENT_TYPE, content_type)];
                Ok((content_type, Body::from(printed.bytes)).into_response())
            }
            _ => Err(failure(
                StatusCode::BAD_GATEWAY,
                "Vector has printed neither a schema nor a version",
            )),
        }
    }

    fn admit(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let permit = self.admitted.try_acquire();
        let reason = "too many requests wait; retry later";
        permit.map_err(|_| failure(StatusCode::SERVICE_UNAVAILABLE, reason))
    }

    fn not_run(&self, error: &io::Error) -> Failure {
        let program = self.program.path().display();
        tracing::error!(%error, %program, "cannot run Vector");
        failure(StatusCode::BAD_GATEWAY, "Vector cannot be run")
    }
}

/// Removes the configurations of an earlier process, which may have been killed during a validation.
pub(crate) fn remove_left_configurations(work: &Path) -> io::Result<()> {
    for entry in fs::read_dir(work)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Reads the configuration. No content is part of an error.
async fn read(request: Request) -> Result<Configuration, Failure> {
    let active = request.extensions().get::<Arc<ActiveRequest>>().cloned();
    let body = timeout(READ_TIMEOUT, to_bytes(request.into_body(), MAX_BODY_BYTES)).await;
    let body =
        body.map_err(|_| failure(StatusCode::REQUEST_TIMEOUT, "the body was not sent in time"))?;
    let body = body.map_err(|_| {
        let reason = format!("the body has more than {MAX_BODY_BYTES} bytes");
        failure(StatusCode::PAYLOAD_TOO_LARGE, &reason)
    })?;
    if let Some(active) = active {
        active.mark_request_received();
    }
    let invalid = || failure(StatusCode::BAD_REQUEST, "the body is not a configuration");
    let configuration: Configuration = serde_json::from_slice(&body).map_err(|_| invalid())?;
    let are_names = configuration.files.keys().all(|name| is_file_name(name));
    are_names.then_some(configuration).ok_or_else(invalid)
}

/// Returns true if a name is one of a file in the directory, and not one of a hidden file.
fn is_file_name(name: &str) -> bool {
    let is_part = Path::new(name).file_name() == Some(name.as_ref());
    is_part && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Writes files that only this user can read.
fn write(directory: &Path, configuration: &Configuration) -> io::Result<()> {
    for (name, content) in &configuration.files {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600);
        file.open(directory.join(name))?.write_all(content)?;
    }
    Ok(())
}

fn answer(ended: &Ended, log: LogTail) -> Answer {
    let unfinished = |reason: String| Answer {
        outcome: Outcome::Unfinished,
        exit_code: None,
        log: reason,
    };
    let status = match ended {
        Ended::TimedOut => return unfinished("it has not ended in time".to_owned()),
        Ended::Status(status) => status,
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => Answer {
            outcome: Outcome::of_exit_code(code),
            exit_code: Some(code),
            log: log.into_text(),
        },
        (None, Some(signal)) => unfinished(format!("signal {signal} has ended it")),
        (None, None) => unfinished("it has no exit code".to_owned()),
    }
}

/// Response to a request that gets no answer.
struct Failure {
    status: StatusCode,
    reason: String,
}

fn failure(status: StatusCode, reason: &str) -> Failure {
    Failure {
        status,
        reason: format!("{reason}\n"),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, self.reason).into_response()
    }
}
