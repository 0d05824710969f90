//! Topics: their HTTP API, its client, and the simulator that is slow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use http::Request;
use kube::{Client, Config};
use lockstep_controller::ReconcileError;
use lockstep_test::chaos::{ExternalSystem, HttpBackend};
use serde_json::Value;

/// Time of a call to the slow simulator.
const LATENCY: Duration = Duration::from_millis(10);

/// Longest time for which a change by another client waits for one by the operator.
const MAX_WAIT: Duration = Duration::from_millis(300);

/// Topics by name.
#[derive(Clone, Default)]
pub struct Topics(Arc<Mutex<BTreeMap<String, Value>>>);

impl Topics {
    pub fn all(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates or replaces the topic with this name, or removes the one with this id.
    pub fn set(&self, id: &str, topic: Option<Value>) {
        match topic {
            Some(topic) => {
                let name = topic["name"].as_str().unwrap_or_default().to_owned();
                self.all().insert(name, topic);
            }
            None => drop(self.all().remove(id)),
        }
    }

    /// Returns the API. A topic that does not exist is `null`.
    pub fn api(&self) -> Router {
        let read = async |State(topics): State<Self>, Path(name): Path<String>| {
            Json(topics.all().get(&name).cloned())
        };
        let write = async |State(topics): State<Self>,
                           Path(name): Path<String>,
                           Json(topic): Json<Option<Value>>| {
            topics.set(&name, topic);
            Json(Value::Null)
        };
        let list = async |State(topics): State<Self>| Json(topics.all().clone());
        Router::new()
            .route("/topics", get(list))
            .route("/topics/{name}", get(read).put(write))
            .with_state(self.clone())
    }
}

/// Client of the API.
pub struct TopicClient(Client);

impl TopicClient {
    pub fn new(url: &str) -> Self {
        let mut config = Config::new(url.parse().expect("a URL"));
        // A call that is repeated may end after the leadership that was required before its first attempt.
        config.default_retry = false;
        Self(Client::try_from(config).expect("a client"))
    }

    pub async fn all(&self) -> Result<BTreeMap<String, Value>, ReconcileError> {
        let text = self.call(Request::get("/topics"), Vec::new()).await?;
        Ok(serde_json::from_str(&text).expect("topics"))
    }

    pub async fn get(&self, name: &str) -> Result<Option<Value>, ReconcileError> {
        let request = Request::get(format!("/topics/{name}"));
        let text = self.call(request, Vec::new()).await?;
        Ok(serde_json::from_str(&text).expect("a topic"))
    }

    pub async fn put(&self, name: &str, topic: &Value) -> Result<(), ReconcileError> {
        let request = Request::put(format!("/topics/{name}"));
        let request = request.header("Content-Type", "application/json");
        self.call(request, topic.to_string().into_bytes()).await?;
        Ok(())
    }

    pub async fn delete(&self, name: &str) -> Result<(), ReconcileError> {
        self.put(name, &Value::Null).await
    }

    async fn call(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<String, ReconcileError> {
        let request = request.body(body).expect("a request");
        let answer = self.0.request_text(request).await;
        answer.map_err(|error| ReconcileError::Transient {
            reason: "TopicsFailed",
            message: error.to_string(),
        })
    }
}

/// Simulator whose answers to the kit take time. A change by another client ends when the operator has changed something else
/// meanwhile: the kit must not confuse the two.
#[derive(Default)]
pub struct SlowTopics(Topics);

impl ExternalSystem for SlowTopics {
    fn http(&self) -> Option<HttpBackend> {
        Some(HttpBackend::service(self.0.api()))
    }

    fn resources(&self) -> BTreeMap<String, Value> {
        sleep(LATENCY);
        let all = self.0.all().clone();
        sleep(LATENCY);
        all
    }

    fn set(&self, id: &str, topic: Option<Value>) {
        sleep(LATENCY);
        self.0.set(id, topic);
        let set = self.0.all().clone();
        let started = Instant::now();
        while *self.0.all() == set && started.elapsed() < MAX_WAIT {
            sleep(Duration::from_millis(1));
        }
    }
}
