//! Steady load of different requests; each response is compared with what the rules require.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use lockstep_envtest::Cluster;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Minimum interval between the requests of a worker.
const PACE: Duration = Duration::from_millis(30);

/// Requests that continue until they are stopped.
pub struct Load {
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
    counts: Arc<ResponseCounts>,
}

/// Counts of the responses.
#[derive(Default)]
pub struct ResponseCounts {
    requests: AtomicU64,
    /// Unexpected responses, with their times.
    unexpected: Mutex<Vec<(Instant, String)>>,
}

impl ResponseCounts {
    /// Number of requests, with expected or unexpected responses.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Unexpected responses, with their counts.
    pub fn unexpected(&self) -> BTreeMap<String, usize> {
        let all = self.all_unexpected();
        let mut counted = BTreeMap::new();
        for (_, what) in all {
            *counted.entry(what).or_default() += 1;
        }
        counted
    }

    pub fn all_unexpected(&self) -> Vec<(Instant, String)> {
        let unexpected = self.unexpected.lock();
        unexpected.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, result: Result<(), String>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if let Err(what) = result {
            let mut unexpected = self
                .unexpected
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            unexpected.push((Instant::now(), what));
        }
    }
}

impl Load {
    /// Starts the requests.
    pub async fn start(cluster: &Cluster) -> Self {
        let (stop, _) = watch::channel(false);
        let counts = Arc::new(ResponseCounts::default());
        let mut workers = Vec::new();
        for number in 0..4 {
            let worker = Worker {
                api: databases(cluster),
                number,
                counts: Arc::clone(&counts),
                stopped: stop.subscribe(),
            };
            worker.prepare().await;
            workers.push(tokio::spawn(worker.run()));
        }
        Self {
            stop,
            workers,
            counts,
        }
    }

    pub fn counts(&self) -> &ResponseCounts {
        &self.counts
    }

    /// Stops the requests, and waits for the responses to those in flight.
    pub async fn stop(self) -> Arc<ResponseCounts> {
        self.stop.send_replace(true);
        for worker in self.workers {
            worker.await.expect("a worker does not panic");
        }
        self.counts
    }
}

struct Worker {
    api: Api<DynamicObject>,
    number: usize,
    counts: Arc<ResponseCounts>,
    stopped: watch::Receiver<bool>,
}

impl Worker {
    async fn prepare(&self) {
        let object = object(&self.existing_name(), "app");
        let made = self.api.create(&PostParams::default(), &object).await;
        made.expect("the database for later changes is created");
    }

    fn existing_name(&self) -> String {
        format!("standing-{}", self.number)
    }

    async fn run(self) {
        let mut turn = 0_u64;
        let mut pace = tokio::time::interval(PACE);
        while !*self.stopped.borrow() {
            pace.tick().await;
            let result = match turn % 8 {
                0 | 3 => self.dry_run("app", false).await,
                1 | 5 => self.dry_run("user", true).await,
                2 | 6 => self.change(turn).await,
                4 => self.change_badly().await,
                // Less often than the others: a stored object also gets an instance in AWS.
                _ if turn % 64 == 7 => self.create_and_delete(turn).await,
                _ => self.dry_run("app", false).await,
            };
            self.counts.count(result);
            turn += 1;
        }
    }

    async fn dry_run(&self, username: &str, is_denied: bool) -> Result<(), String> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = object(&format!("dry-{}", self.number), username);
        expect(self.api.create(&params, &object).await, is_denied)
    }

    async fn change(&self, turn: u64) -> Result<(), String> {
        let patch = json!({"metadata": {"annotations": {"turn": turn.to_string()}}});
        let params = PatchParams::default();
        let name = self.existing_name();
        expect(
            self.api.patch(&name, &params, &Patch::Merge(patch)).await,
            false,
        )
    }

    async fn change_badly(&self) -> Result<(), String> {
        let patch = json!({"spec": {"credentials": {"username": "user"}}});
        let params = PatchParams::default();
        let name = self.existing_name();
        expect(
            self.api.patch(&name, &params, &Patch::Merge(patch)).await,
            true,
        )
    }

    async fn create_and_delete(&self, turn: u64) -> Result<(), String> {
        let name = format!("passing-{}-{turn}", self.number);
        let params = PostParams::default();
        expect(self.api.create(&params, &object(&name, "app")).await, false)?;
        let deleted = self.api.delete(&name, &DeleteParams::default()).await;
        deleted.map(drop).map_err(|error| error.to_string())
    }
}

/// Returns an error that describes the response if it is not what the rules require.
fn expect(result: Result<DynamicObject, kube::Error>, is_denied: bool) -> Result<(), String> {
    match result {
        Ok(_) if is_denied => Err("an invalid object was admitted".to_owned()),
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => {
            let by_rule = status.code == 422 && status.message.contains("[username-reserved]");
            if is_denied && by_rule {
                Ok(())
            } else {
                Err(format!("{}: {}", status.code, status.message))
            }
        }
        Err(error) => Err(error.to_string()),
    }
}

fn object(name: &str, username: &str) -> DynamicObject {
    let object: Value = json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "engine": "postgres",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 100},
            "credentials": {"username": username, "secretName": "credentials"},
            "deletionPolicy": "Delete",
            "deletionProtection": false,
        },
    });
    serde_json::from_value(object).expect("an object")
}

fn databases(cluster: &Cluster) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("database.example.com", "v1alpha1", "CloudDatabase");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "clouddatabases");
    Api::namespaced_with(cluster.client(), "default", &resource)
}
