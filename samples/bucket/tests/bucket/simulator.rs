//! Simulator of an object storage.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use lockstep_test::chaos::{ExternalSystem, HttpBackend};
use serde_json::{Value, json};

/// Storage with buckets by their names.
#[derive(Clone, Default)]
pub struct Storage(Arc<Mutex<BTreeMap<String, Value>>>);

impl Storage {
    fn buckets(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bucket(name: &str, owner: &Value) -> Value {
    json!({"name": name, "owner": owner, "versioning": false, "replication": null})
}

impl ExternalSystem for Storage {
    fn http(&self) -> Option<HttpBackend> {
        let routes = Router::new()
            .route("/buckets/{name}", get(read).put(create).delete(remove))
            .route("/buckets/{name}/{property}", put(change));
        Some(HttpBackend::service(routes.with_state(self.clone())))
    }

    fn resources(&self) -> BTreeMap<String, Value> {
        self.buckets().clone()
    }

    fn set(&self, id: &str, resource: Option<Value>) {
        match resource {
            Some(mut resource) => {
                let name = resource["name"].as_str().unwrap_or_default().to_owned();
                resource["replication"] = resource["replication"].take();
                self.buckets().insert(name, resource);
            }
            None => drop(self.buckets().remove(id)),
        }
    }

    fn drifted(&self, bucket: &Value, random: &mut fastrand::Rng) -> Option<Value> {
        let mut changed = bucket.clone();
        if random.bool() {
            changed["versioning"] = (!bucket["versioning"].as_bool().unwrap_or_default()).into();
        } else {
            changed["replication"] = "another-bucket".into();
        }
        Some(changed)
    }
}

async fn read(State(storage): State<Storage>, Path(name): Path<String>) -> Response {
    match storage.resources().remove(&name) {
        Some(bucket) => Json(bucket).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn create(
    State(storage): State<Storage>,
    Path(name): Path<String>,
    Json(body): Json<Value>,
) -> StatusCode {
    let mut buckets = storage.buckets();
    let owner = &body["owner"];
    let stored = buckets
        .entry(name.clone())
        .or_insert_with(|| bucket(&name, owner));
    if stored["owner"] == *owner {
        StatusCode::OK
    } else {
        StatusCode::CONFLICT
    }
}

async fn change(
    State(storage): State<Storage>,
    Path((name, property)): Path<(String, String)>,
    Json(value): Json<Value>,
) -> StatusCode {
    let mut buckets = storage.buckets();
    let is_unknown = |target: &Value| {
        target
            .as_str()
            .is_some_and(|target| !buckets.contains_key(target))
    };
    if property == "replication" && is_unknown(&value) {
        return StatusCode::CONFLICT;
    }
    let Some(stored) = buckets.get_mut(&name) else {
        return StatusCode::NOT_FOUND;
    };
    let is_versioned = stored["versioning"] == true;
    let replicates = !stored["replication"].is_null();
    let is_permitted = match property.as_str() {
        "replication" => value.is_null() || is_versioned,
        _ => value == true || !replicates,
    };
    if !is_permitted {
        return StatusCode::CONFLICT;
    }
    stored[property.as_str()] = value;
    StatusCode::OK
}

async fn remove(State(storage): State<Storage>, Path(name): Path<String>) -> StatusCode {
    let mut buckets = storage.buckets();
    let is_target = |bucket: &Value| bucket["replication"] == *name && bucket["name"] != *name;
    if buckets.values().any(is_target) {
        return StatusCode::CONFLICT;
    }
    match buckets.remove(&name) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}
