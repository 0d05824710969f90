//! Simulator of the API that manages a Postgres server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use lockstep_test::chaos::{ExternalSystem, HttpBackend};
use serde_json::Value;

/// Server with roles by their names. It keeps their passwords, and never returns them.
#[derive(Clone, Default)]
pub struct PostgresServer(Arc<Mutex<Content>>);

#[derive(Default)]
pub struct Content {
    roles: BTreeMap<String, Value>,
    last_version: u64,
    passwords: Vec<String>,
}

impl Content {
    fn store(&mut self, mut role: Value) {
        self.last_version += 1;
        role["version"] = self.last_version.into();
        let password = role["password"].as_str().unwrap_or_default();
        self.passwords.push(password.to_owned());
        let name = role["name"].as_str().unwrap_or_default().to_owned();
        self.roles.insert(name, role);
    }

    /// Returns true if the conditions of a request hold for what is stored.
    fn permits(&self, name: &str, headers: &HeaderMap) -> bool {
        let stored = self.roles.get(name).map(|role| role["version"].to_string());
        let version = headers.get("if-match").and_then(|it| it.to_str().ok());
        let is_new = headers.contains_key("if-none-match");
        (!is_new || stored.is_none()) && (version.is_none() || version == stored.as_deref())
    }
}

impl PostgresServer {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExternalSystem for PostgresServer {
    fn http(&self) -> Option<HttpBackend> {
        let role = get(read).put(write).delete(remove);
        let routes = Router::new().route("/roles/{name}", role);
        Some(HttpBackend::service(routes.with_state(self.clone())))
    }

    fn resources(&self) -> BTreeMap<String, Value> {
        self.content().roles.clone()
    }

    fn set(&self, id: &str, resource: Option<Value>) {
        match resource {
            Some(role) => self.content().store(role),
            None => drop(self.content().roles.remove(id)),
        }
    }

    fn drifted(&self, role: &Value, random: &mut fastrand::Rng) -> Option<Value> {
        let mut changed = role.clone();
        match random.u32(..3) {
            0 => changed["login"] = (!role["login"].as_bool().unwrap_or_default()).into(),
            1 => changed["connectionLimit"] = 777.into(),
            _ => changed["passwordId"] = "".into(),
        }
        Some(changed)
    }

    fn secrets(&self) -> Vec<String> {
        self.content().passwords.clone()
    }
}

async fn read(State(server): State<PostgresServer>, Path(name): Path<String>) -> Response {
    match server.resources().remove(&name) {
        Some(mut role) => {
            role.as_object_mut().map(|role| role.remove("password"));
            Json(role).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn write(
    State(server): State<PostgresServer>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Json(role): Json<Value>,
) -> StatusCode {
    let mut content = server.content();
    if !content.permits(&name, &headers) {
        return StatusCode::PRECONDITION_FAILED;
    }
    content.store(role);
    StatusCode::OK
}

async fn remove(
    State(server): State<PostgresServer>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> StatusCode {
    let mut content = server.content();
    if !content.roles.contains_key(&name) {
        return StatusCode::NOT_FOUND;
    }
    if !content.permits(&name, &headers) {
        return StatusCode::PRECONDITION_FAILED;
    }
    content.roles.remove(&name);
    StatusCode::NO_CONTENT
}
