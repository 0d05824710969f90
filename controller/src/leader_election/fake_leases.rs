//! API server with Leases only, for tests: requests take time, and a replica can be cut off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

/// Longest time that a request or a response is on its way.
const LATENCY_MS: u64 = 300;

/// The Leases, by name. Clones share them.
#[derive(Clone)]
pub(crate) struct FakeLeases {
    state: Arc<Mutex<State>>,
}

struct State {
    leases: BTreeMap<String, Value>,
    version: u64,
    rng: Rng,
}

impl FakeLeases {
    pub(crate) fn new(seed: u64) -> Self {
        let state = State {
            leases: BTreeMap::new(),
            version: 0,
            rng: Rng::with_seed(seed),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the client of a replica. While it is cut off, neither requests nor responses arrive.
    pub(crate) fn client(&self, is_cut_off: &watch::Sender<bool>) -> Client {
        let leases = self.clone();
        let is_cut_off = is_cut_off.subscribe();
        let server = tower::service_fn(move |request: Request<Body>| {
            let (leases, mut is_cut_off) = (leases.clone(), is_cut_off.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                sleep(leases.latency()).await;
                is_cut_off.wait_for(|is_cut_off| !is_cut_off).await?;
                let name = parts.uri.path().rsplit('/').next().unwrap_or_default();
                let query = parts.uri.query().unwrap_or_default();
                let response = leases.respond(&parts.method, name, query, &body);
                sleep(leases.latency()).await;
                is_cut_off.wait_for(|is_cut_off| !is_cut_off).await?;
                Ok::<_, tower::BoxError>(response)
            }
        });
        Client::new(server, "default")
    }

    /// Writes another holder into a Lease, as by hand.
    pub(crate) fn steal(&self, name: &str) {
        let mut state = self.state.lock();
        state.version += 1;
        let version = state.version.to_string();
        if let Some(lease) = state.leases.get_mut(name) {
            lease["spec"]["holderIdentity"] = json!("another-holder");
            lease["metadata"]["resourceVersion"] = json!(version);
        }
    }

    /// Returns the holder of a Lease.
    pub(crate) fn holder(&self, name: &str) -> Option<String> {
        let state = self.state.lock();
        let holder = state.leases.get(name)?["spec"]["holderIdentity"].as_str();
        holder.map(String::from)
    }

    /// Returns the names of all Leases.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().leases.keys().cloned().collect()
    }

    fn latency(&self) -> Duration {
        Duration::from_millis(self.state.lock().rng.u64(..LATENCY_MS))
    }

    fn respond(&self, method: &Method, name: &str, query: &str, body: &[u8]) -> Response<Body> {
        let mut state = self.state.lock();
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let found = state.leases.get(name).cloned();
        let outcome = match (method, found) {
            (&Method::GET, _) if name == "leases" => Ok(state.list(query)),
            (&Method::GET, Some(lease)) => Ok(lease),
            (&Method::POST, _) => state.create(sent),
            (&Method::PUT, Some(lease)) => {
                let version = &sent["metadata"]["resourceVersion"];
                if lease["metadata"]["resourceVersion"] == *version {
                    Ok(state.store(name, sent))
                } else {
                    Err(StatusCode::CONFLICT)
                }
            }
            (&Method::DELETE, Some(lease)) => {
                let version = &sent["preconditions"]["resourceVersion"];
                if version.is_null() || lease["metadata"]["resourceVersion"] == *version {
                    state.leases.remove(name);
                    Ok(lease)
                } else {
                    Err(StatusCode::CONFLICT)
                }
            }
            _ => Err(StatusCode::NOT_FOUND),
        };
        let (status, content) = match outcome {
            Ok(content) => (StatusCode::OK, content),
            Err(status) => {
                let reason = match status {
                    StatusCode::NOT_FOUND => "NotFound",
                    _ => "Conflict",
                };
                let failure = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "reason": reason, "message": "", "code": status.as_u16()});
                (status, failure)
            }
        };
        let response = Response::builder().status(status);
        let response = response.body(Body::from(content.to_string().into_bytes()));
        response.expect("the response is valid")
    }
}

impl State {
    fn list(&self, query: &str) -> Value {
        let query = query
            .replace("%3D", "=")
            .replace("%2C", ",")
            .replace("%2F", "/");
        let selector = query
            .split('&')
            .find_map(|part| part.strip_prefix("labelSelector="));
        let labels: Vec<_> = selector
            .into_iter()
            .flat_map(|selector| selector.split(','))
            .filter_map(|label| label.split_once('='))
            .collect();
        let has_labels = |lease: &&Value| {
            let mut labels = labels.iter();
            labels.all(|(name, value)| lease["metadata"]["labels"][name] == *value)
        };
        let items: Vec<_> = self.leases.values().filter(has_labels).collect();
        json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": items})
    }

    fn create(&mut self, lease: Value) -> Result<Value, StatusCode> {
        let name = lease["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if self.leases.contains_key(&name) {
            return Err(StatusCode::CONFLICT);
        }
        Ok(self.store(&name, lease))
    }

    fn store(&mut self, name: &str, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.leases.insert(name.to_owned(), lease.clone());
        lease
    }
}
