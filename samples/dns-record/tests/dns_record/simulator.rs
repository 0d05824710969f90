//! Simulator of the DNS provider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use lockstep_test::chaos::{ExternalSystem, HttpBackend};
use serde_json::{Value, json};

/// Zone with records by their ids.
#[derive(Clone, Default)]
pub struct DnsZone(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    records: BTreeMap<String, Value>,
    last_id: u64,
}

impl Content {
    /// Stores a record with the next version.
    fn store(&mut self, id: &str, mut record: Value) -> Value {
        let before = self.records.get(id);
        let version = before
            .and_then(|it| it["version"].as_u64())
            .unwrap_or_default();
        record["id"] = id.into();
        record["version"] = (version + 1).into();
        self.records.insert(id.to_owned(), record.clone());
        record
    }
}

impl DnsZone {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExternalSystem for DnsZone {
    fn http(&self) -> Option<HttpBackend> {
        let routes = Router::new()
            .route("/records", get(list).post(create))
            .route("/records/{id}", put(update).patch(change).delete(delete));
        Some(HttpBackend::service(routes.with_state(self.clone())))
    }

    fn resources(&self) -> BTreeMap<String, Value> {
        self.content().records.clone()
    }

    fn set(&self, id: &str, resource: Option<Value>) {
        let mut content = self.content();
        match resource {
            Some(record) => drop(content.store(id, record)),
            None => drop(content.records.remove(id)),
        }
    }

    fn drifted(&self, record: &Value, random: &mut fastrand::Rng) -> Option<Value> {
        let mut changed = record.clone();
        match random.u32(..3) {
            0 => changed["ttl"] = random.u32(1_000..2_000).into(),
            1 => changed["values"] = json!(["changed by mistake"]),
            _ => changed["label"] = "".into(),
        }
        Some(changed)
    }
}

async fn list(
    State(zone): State<DnsZone>,
    Query(wanted): Query<BTreeMap<String, String>>,
) -> Json<Vec<Value>> {
    let records = zone.resources().into_values();
    let is_wanted = |record: &Value| wanted.iter().all(|(name, value)| record[name] == **value);
    Json(records.filter(is_wanted).collect())
}

async fn create(State(zone): State<DnsZone>, Json(record): Json<Value>) -> Response {
    let mut content = zone.content();
    content.last_id += 1;
    let id = format!("record-{}", content.last_id);
    (StatusCode::CREATED, Json(content.store(&id, record))).into_response()
}

/// Replaces a record.
async fn update(
    State(zone): State<DnsZone>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(record): Json<Value>,
) -> Response {
    let mut content = zone.content();
    let Some(stored) = content.records.get(&id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let version = headers.get("if-match").and_then(|it| it.to_str().ok());
    let stored_version = stored["version"].to_string();
    if version.is_some_and(|version| version != stored_version) {
        return StatusCode::PRECONDITION_FAILED.into_response();
    }
    Json(content.store(&id, record)).into_response()
}

/// Replaces some fields of a record.
async fn change(
    State(zone): State<DnsZone>,
    Path(id): Path<String>,
    Json(fields): Json<BTreeMap<String, Value>>,
) -> Response {
    let mut content = zone.content();
    let Some(mut record) = content.records.get(&id).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    for (name, value) in fields {
        record[name] = value;
    }
    Json(content.store(&id, record)).into_response()
}

async fn delete(State(zone): State<DnsZone>, Path(id): Path<String>) -> StatusCode {
    match zone.content().records.remove(&id) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}
