//! DNS provider: an HTTP API with the records of all operators, which counts its requests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;

/// Number of requests by method.
pub(crate) type Requests = BTreeMap<String, usize>;

/// DNS provider.
#[derive(Clone, Default)]
pub(crate) struct Provider(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    records: HashMap<String, Value>,
    /// Ids of records by the value of an indexed field.
    index: HashMap<(&'static str, String), HashSet<String>>,
    last_id: u64,
    requests: Requests,
    /// Owners whose records were read.
    read: HashSet<String>,
    /// Number of requests that will fail.
    failures: usize,
}

/// Fields by which records are found.
const INDEXED: [&str; 2] = ["name", "owner"];

impl Content {
    /// Stores a new record and returns its id.
    fn add(&mut self, record: Value) -> String {
        self.last_id += 1;
        let id = format!("record-{}", self.last_id);
        self.store(&id, record);
        id
    }

    /// Stores a record with the next version.
    fn store(&mut self, id: &str, mut record: Value) -> Value {
        let before = self.remove(id);
        let version = before
            .and_then(|it| it["version"].as_u64())
            .unwrap_or_default();
        record["id"] = id.into();
        record["version"] = (version + 1).into();
        for field in INDEXED {
            let ids = self.index.entry((field, text(&record, field))).or_default();
            ids.insert(id.to_owned());
        }
        self.records.insert(id.to_owned(), record.clone());
        record
    }

    fn remove(&mut self, id: &str) -> Option<Value> {
        let record = self.records.remove(id)?;
        for field in INDEXED {
            let key = (field, text(&record, field));
            if let Some(ids) = self.index.get_mut(&key) {
                ids.remove(id);
            }
        }
        Some(record)
    }
}

fn text(record: &Value, field: &str) -> String {
    record[field].as_str().unwrap_or_default().to_owned()
}

impl Provider {
    /// Starts the HTTP API and returns its URL.
    pub(crate) async fn serve(&self) -> anyhow::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(address).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let routes = Router::new()
            .route("/records", get(list).post(create))
            .route("/records/{id}", put(update).delete(delete))
            .layer(middleware::from_fn_with_state(self.clone(), count))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(url)
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn take_requests(&self) -> Requests {
        std::mem::take(&mut self.content().requests)
    }

    /// Returns the number of requests since the last call of [`take_requests`](Self::take_requests).
    pub(crate) fn request_count(&self) -> usize {
        self.content().requests.values().sum()
    }

    /// Forgets which owners' records were read.
    pub(crate) fn forget_reads(&self) {
        self.content().read.clear();
    }

    /// Returns the number of owners whose records were read.
    pub(crate) fn read_count(&self) -> usize {
        self.content().read.len()
    }

    /// Stores a record that belongs to no object and returns its id.
    pub(crate) fn add(&self, record: Value) -> String {
        self.content().add(record)
    }

    /// Removes a record.
    pub(crate) fn remove(&self, id: &str) {
        self.content().remove(id);
    }

    /// Lets a number of requests fail.
    pub(crate) fn fail(&self, requests: usize) {
        self.content().failures = requests;
    }

    /// Returns the stored records.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.content().records.values().cloned().collect()
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn count(State(provider): State<Provider>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let fails = {
        let mut content = provider.content();
        *content.requests.entry(method).or_default() += 1;
        let fails = content.failures > 0;
        content.failures = content.failures.saturating_sub(1);
        fails
    };
    if fails {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

async fn list(
    State(provider): State<Provider>,
    Query(wanted): Query<BTreeMap<String, String>>,
) -> Response {
    let mut content = provider.content();
    let wanted = INDEXED
        .iter()
        .find_map(|field| Some((*field, wanted.get(*field)?.clone())));
    let Some(key) = wanted else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if key.0 == "owner" {
        content.read.insert(key.1.clone());
    }
    let ids = content.index.get(&key).into_iter().flatten();
    let found: Vec<_> = ids.filter_map(|id| content.records.get(id)).collect();
    Json(found).into_response()
}

async fn create(State(provider): State<Provider>, Json(record): Json<Value>) -> Response {
    let mut content = provider.content();
    let id = content.add(record);
    (StatusCode::CREATED, Json(&content.records[&id])).into_response()
}

/// Replaces a record.
async fn update(
    State(provider): State<Provider>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(record): Json<Value>,
) -> Response {
    let mut content = provider.content();
    let Some(stored) = content.records.get(&id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let version = headers.get("if-match").and_then(|it| it.to_str().ok());
    if version != Some(stored["version"].to_string().as_str()) {
        return StatusCode::PRECONDITION_FAILED.into_response();
    }
    Json(content.store(&id, record)).into_response()
}

async fn delete(State(provider): State<Provider>, Path(id): Path<String>) -> StatusCode {
    match provider.content().remove(&id) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}
