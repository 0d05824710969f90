//! Simulator of the API, in memory: for tests and for the command `dev`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use lockstep_sdk::{RunningService, anyhow};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Content of the API, by id.
#[derive(Clone, Default)]
pub struct Simulator(Arc<Mutex<BTreeMap<String, Value>>>);

impl Simulator {
    /// Returns everything that is stored.
    pub fn content(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the API.
    pub fn routes(&self) -> Router {
        Router::new()
            .route("/greetings/{id}", get(read).put(store).delete(remove))
            .with_state(self.clone())
    }
}

/// Starts a simulator on a free port. It stops when the returned service is dropped.
pub async fn start() -> anyhow::Result<RunningService> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut server = JoinSet::new();
    server.spawn(axum::serve(listener, Simulator::default().routes()).into_future());
    Ok(RunningService {
        environment: vec![("GREETING_URL".to_owned(), url)],
        guard: Box::new(server),
    })
}

async fn read(State(api): State<Simulator>, Path(id): Path<String>) -> Result<Json<Value>, StatusCode> {
    let stored = api.content().get(&id).cloned();
    stored.map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn store(State(api): State<Simulator>, Path(id): Path<String>, Json(content): Json<Value>) {
    api.content().insert(id, content);
}

async fn remove(State(api): State<Simulator>, Path(id): Path<String>) -> StatusCode {
    match api.content().remove(&id) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}
