//! Simulated external system: its calls take time, and it records which replica calls for which object.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use kube::{Client, Config};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::sharding::job::CALLS;

/// Time that a call takes, in milliseconds.
const LATENCY: std::ops::Range<u64> = 100..600;

/// Connection of a replica to the external system.
pub struct Connection {
    client: Client,
    replica: String,
}

impl Connection {
    /// Time after which a call has ended, whatever its result is.
    pub const DEADLINE: Duration = Duration::from_secs(3);

    /// Connects a replica with a name that no other process has.
    pub fn new(url: &str, replica: &str) -> Self {
        let config = Config::new(url.parse().expect("a URL"));
        Self {
            client: Client::try_from(config).expect("a client"),
            replica: replica.to_owned(),
        }
    }

    /// Calls the system for an object. `session` identifies the reconciliation.
    pub async fn call(
        &self,
        object: &str,
        session: u64,
        step: u32,
        size: u64,
    ) -> Result<(), String> {
        let replica = &self.replica;
        let uri = format!("/{object}/{replica}/{session}/{step}/{size}");
        let request = http::Request::get(uri).body(Vec::new());
        let request = request.expect("the URL is valid");
        let called = timeout(Self::DEADLINE, self.client.request_text(request)).await;
        let called = called.map_err(|error| error.to_string())?;
        called.map(drop).map_err(|error| error.to_string())
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Call {
    object: String,
    replica: String,
    session: u64,
    step: u32,
    size: u64,
}

/// Simulated external system.
#[derive(Clone)]
pub struct ExternalSystem {
    address: SocketAddr,
    record: Arc<Mutex<Record>>,
}

#[derive(Default)]
struct Record {
    objects: HashMap<String, Object>,
    /// Reconciliations during which another one of the same object has begun.
    superseded: HashSet<u64>,
    calls: usize,
    violations: Vec<String>,
}

#[derive(Default)]
struct Object {
    /// Calls that are being processed, by replica.
    in_progress: Vec<String>,
    /// Latest reconciliation, until its last call has ended.
    session: Option<(u64, String)>,
    /// Size with which a reconciliation has ended.
    size: u64,
}

impl ExternalSystem {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let record = Arc::default();
        let routes = Router::new()
            .route("/{object}/{replica}/{session}/{step}/{size}", get(process))
            .with_state(Arc::clone(&record));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, record }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the objects whose latest completed reconciliation had another size.
    pub fn not_reconciled(&self, objects: &[String], size: u64) -> Vec<String> {
        let record = self.record();
        let is_missing = |name: &&String| {
            record
                .objects
                .get(*name)
                .is_none_or(|object| object.size != size)
        };
        objects.iter().filter(is_missing).cloned().collect()
    }

    /// Returns the number of calls.
    ///
    /// # Panics
    ///
    /// If two replicas have worked on an object at the same time.
    pub fn check(&self) -> usize {
        let record = self.record();
        let (count, first) = (record.violations.len(), record.violations.first());
        assert_eq!(
            first, None,
            "the first of {count}, in {} calls",
            record.calls
        );
        record.calls
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no panic under the lock")
    }
}

/// Processes a call to its end, even if its client is gone.
async fn process(State(record): State<Arc<Mutex<Record>>>, Path(call): Path<Call>) {
    let processed = tokio::spawn(async move {
        record.lock().expect("no panic under the lock").begin(&call);
        sleep(Duration::from_millis(fastrand::u64(LATENCY))).await;
        record.lock().expect("no panic under the lock").end(&call);
    });
    processed.await.expect("the call is processed");
}

impl Record {
    fn begin(&mut self, call: &Call) {
        self.calls += 1;
        let object = self.objects.entry(call.object.clone()).or_default();
        if let Some(other) = object.in_progress.first() {
            let violation = format!("{call:?} overlaps with a call of {other}");
            self.violations.push(violation);
        }
        object.in_progress.push(call.replica.clone());
        if self.superseded.contains(&call.session) {
            let violation = format!("{call:?} continues after {:?} has begun", object.session);
            self.violations.push(violation);
        }
        if call.step == 1 {
            let began = Some((call.session, call.replica.clone()));
            if let Some((before, _)) = std::mem::replace(&mut object.session, began) {
                self.superseded.insert(before);
            }
        }
    }

    fn end(&mut self, call: &Call) {
        let object = self.objects.entry(call.object.clone()).or_default();
        let position = object.in_progress.iter().position(|it| *it == call.replica);
        position.map(|at| object.in_progress.remove(at));
        let is_latest = object.session.as_ref().map(|(it, _)| *it) == Some(call.session);
        if call.step == CALLS && is_latest {
            object.session = None;
            object.size = call.size;
        }
    }
}
