//! Observation of the Pods of each workload, in the background.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams, LogParams};
use lockstep_controller::{ControllerRegistry, ReconcileTrigger};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::run::follow::reload::log::{self, LogReading};
use crate::run::follow::reload::pod_loads::{Expected, GRACE, Loads};

/// Number of logs that are read in one turn, and at the same time.
const READS: usize = 24;
const CONCURRENCY: usize = 8;

/// Time within which a log must be read.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two turns: soon after a publication, and later.
const SOON: Duration = Duration::from_secs(2);
const LATER: Duration = Duration::from_secs(20);

/// Time after a publication during which the turns follow each other soon.
const FIRST: Duration = Duration::from_mins(1);

/// Time between two lists of the Pods.
const LIST: Duration = Duration::from_secs(15);

/// Time after which the workload is reconciled again while Pods load the configuration, so that its status has their number.
const PROGRESS: Duration = Duration::from_secs(30);

/// Time after which Pods that have not loaded the configuration are read seldom, and how seldom.
const LONG: Duration = Duration::from_mins(30);
const SELDOM: Duration = Duration::from_mins(5);

/// Number of the last lines that are read. In a log with more, the line is looked for where it was expected.
const LINES: i64 = 500;

/// Maximum size of what is read of a log, in bytes.
const BYTES: i64 = 1 << 20;

/// Number of logs that are read at the same time for all workloads of a kind: each may have [`BYTES`].
const READERS: usize = 16;

/// Seconds before a publication from which on the whole log is read: clocks differ.
const SKEW: i64 = 120;

/// Object of an observation: the Pods of a workload, and the configuration that they should load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Container that runs Vector.
    pub(crate) container: String,
    /// Lines that Vector prints once it runs the configuration.
    pub(crate) lines: Vec<String>,
    /// Time of the publication.
    pub(crate) published: Timestamp,
}

/// Observations of all workloads of a kind.
pub(crate) struct Reloads {
    client: Client,
    controllers: ControllerRegistry,
    /// Time after a publication after which a Pod should have loaded it.
    timeout: Duration,
    readers: Arc<Semaphore>,
    workloads: Mutex<HashMap<String, Observed>>,
}

struct Observed {
    target: Target,
    loads: Arc<Mutex<Loads>>,
    task: AbortHandle,
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reloads {
    pub(crate) fn new(
        client: Client,
        controllers: ControllerRegistry,
        timeout: Option<Duration>,
    ) -> Self {
        Self {
            client,
            controllers,
            timeout: timeout.unwrap_or(GRACE),
            readers: Arc::new(Semaphore::new(READERS)),
            workloads: Mutex::default(),
        }
    }

    /// Returns what is known of the Pods of a workload. Begins to observe them if no task does; the workload is reconciled when there
    /// is news. `was_complete`: all Pods had loaded the configuration before they were observed.
    pub(crate) fn observe(
        &self,
        uid: &str,
        target: &Target,
        was_complete: bool,
        trigger: ReconcileTrigger,
    ) -> Loads {
        let mut workloads = self.workloads();
        let known = workloads.remove(uid);
        let (loads, was_complete) = match known {
            Some(known) if known.target == *target && !known.task.is_finished() => {
                let loads = lock(&known.loads).clone();
                workloads.insert(uid.to_owned(), known);
                return loads;
            }
            Some(known) if known.target == *target => (Arc::clone(&known.loads), false),
            Some(known) => {
                let loads = lock(&known.loads).clone().for_next_configuration();
                (Arc::new(Mutex::new(loads)), false)
            }
            None => (Arc::default(), was_complete),
        };
        let observation = Observation {
            client: self.client.clone(),
            controllers: self.controllers.clone(),
            timeout: self.timeout,
            readers: Arc::clone(&self.readers),
            target: target.clone(),
            since: Instant::now(),
            loads: Arc::clone(&loads),
            was_complete,
            trigger,
        };
        let task = tokio::spawn(observation.run()).abort_handle();
        let now = lock(&loads).clone();
        let target = target.clone();
        workloads.insert(
            uid.to_owned(),
            Observed {
                target,
                loads,
                task,
            },
        );
        now
    }

    /// Ends the observation of a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.workloads().remove(uid);
    }

    fn workloads(&self) -> MutexGuard<'_, HashMap<String, Observed>> {
        lock(&self.workloads)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Observation of one configuration.
struct Observation {
    client: Client,
    controllers: ControllerRegistry,
    timeout: Duration,
    readers: Arc<Semaphore>,
    target: Target,
    /// Beginning of the observation: that of the publication, or of this process, or when the lines became part of the Secrets.
    since: Instant,
    loads: Arc<Mutex<Loads>>,
    was_complete: bool,
    trigger: ReconcileTrigger,
}

impl Observation {
    async fn run(self) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.target.namespace);
        let labels = self
            .target
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let labels: Vec<_> = labels.collect();
        let params = ListParams::default().labels(&labels.join(",")).match_any();
        let reported = lock(&self.loads).clone();
        let mut reported = (reported, Instant::now());
        let mut listed = reported.0.listed;
        // If all have loaded the configuration, a reconciliation only asks whether there are others, however many follow each other.
        if let Some(at) = listed.filter(|_| reported.0.is_complete()) {
            sleep_until(at + LIST).await;
        }
        loop {
            if listed.is_none_or(|at| at.elapsed() >= LIST) {
                match timeout(TIMEOUT, pods.list(&params)).await {
                    Ok(Ok(found)) => {
                        let mut loads = lock(&self.loads);
                        loads.update(&found.items, &self.target.container, self.target.published);
                        if self.was_complete && listed.is_none() {
                            loads.assume_loaded();
                        }
                        listed = Some(Instant::now());
                        loads.listed = listed;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "the Pods cannot be listed"),
                    Err(_) => tracing::debug!("the Pods were not listed in time"),
                }
            }
            self.read(&pods).await;
            let loads = lock(&self.loads).clone();
            let is_over = loads.is_complete();
            let is_news = !loads.tells_the_same(&reported.0);
            // While states only change from waiting to loaded, it is enough to tell it now and then.
            let is_progress = is_news && problems(&loads) == problems(&reported.0) && !is_over;
            if is_news && (!is_progress || reported.1.elapsed() >= PROGRESS) {
                let ReconcileTrigger {
                    controller,
                    namespace,
                    name,
                } = &self.trigger;
                // A controller that does not run reconciles every object when it starts.
                let _ = self
                    .controllers
                    .enqueue(controller, namespace.as_deref(), name);
                reported = (loads, Instant::now());
            }
            if is_over {
                return;
            }
            sleep(match self.since.elapsed() {
                time if time < FIRST => SOON,
                time if time < LONG => LATER,
                _ => SELDOM,
            })
            .await;
        }
    }

    /// Reads the next logs.
    async fn read(&self, pods: &Api<Pod>) {
        let next = lock(&self.loads).to_read(READS);
        let reads = next.into_iter().map(|(uid, name)| async move {
            let _permit = self.readers.acquire().await;
            let read = match timeout(TIMEOUT, self.logged(pods, &name)).await {
                Ok(Ok(read)) => Ok(read),
                Ok(Err(error)) => {
                    tracing::debug!(%error, pod = name, "a log cannot be read");
                    Err(reason(&error))
                }
                Err(_) => Err("its log was not read in time"),
            };
            let expected = Expected {
                lines: &self.target.lines,
                published: self.target.published,
                timeout: self.timeout,
                is_late: self.since.elapsed() >= self.timeout,
            };
            lock(&self.loads).set(&uid, read, expected);
        });
        stream::iter(reads)
            .buffer_unordered(CONCURRENCY)
            .collect::<Vec<()>>()
            .await;
    }

    async fn logged(&self, pods: &Api<Pod>, name: &str) -> Result<LogReading, kube::Error> {
        let mut params = LogParams {
            container: Some(self.target.container.clone()),
            tail_lines: Some(LINES),
            limit_bytes: Some(BYTES),
            timestamps: true,
            ..LogParams::default()
        };
        let read = |log: String| log::read(&log, &self.target.lines);
        let end = read(pods.logs(name, &params).await?);
        let time = self.since.elapsed();
        if end != LogReading::default() || time < self.timeout / 5 || time > LONG {
            return Ok(end);
        }
        // Others have written more lines since.
        let age = Timestamp::now()
            .duration_since(self.target.published)
            .as_secs();
        params.since_seconds = Some(age.max(0).saturating_add(SKEW));
        params.tail_lines = None;
        Ok(read(pods.logs(name, &params).await?))
    }
}

/// Returns why a log cannot be read, in a text that is the same for all Pods and each attempt.
fn reason(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            "its log cannot be read: the controller may not `get` pods/log"
        }
        kube::Error::Api(status) if status.is_not_found() => "it does not exist any more",
        kube::Error::Api(_) => "its log cannot be read: the API server answers with an error",
        _ => "its log cannot be read: the API server does not answer",
    }
}

/// Returns the number of Pods with problems.
fn problems(loads: &Loads) -> usize {
    use crate::run::follow::reload::pod_loads::PodState::{CrashLooping, Refused, Stuck, Unknown};
    loads.count(|state| matches!(state, CrashLooping(_) | Refused(_) | Stuck(_) | Unknown(_)))
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// Number of requests for lists and for logs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Requests {
        lists: usize,
        logs: usize,
    }

    /// Observation of a workload with one Pod, whose log is the same at any time.
    struct Observer {
        reloads: Reloads,
        target: Target,
        requests: Arc<Mutex<Requests>>,
    }

    impl Observer {
        fn new(log: &'static str) -> Self {
            let requests = Arc::new(Mutex::new(Requests::default()));
            let seen = Arc::clone(&requests);
            let server = tower::service_fn(move |request: Request<Body>| {
                let is_log = request.uri().path().ends_with("/log");
                let mut seen = lock(&seen);
                let count = if is_log {
                    &mut seen.logs
                } else {
                    &mut seen.lists
                };
                *count += 1;
                let body = if is_log { log.to_owned() } else { pods() };
                let response = Response::new(Body::from(body.into_bytes()));
                async { Ok::<_, std::io::Error>(response) }
            });
            let client = Client::new(server, "n");
            let target = Target {
                namespace: "n".to_owned(),
                labels: BTreeMap::new(),
                container: "vector".to_owned(),
                lines: vec!["file 1".to_owned()],
                published: Timestamp::now(),
            };
            Self {
                reloads: Reloads::new(client, ControllerRegistry::default(), None),
                target,
                requests,
            }
        }

        /// Reconciles the workload once a second.
        async fn reconcile_for(&self, seconds: usize) -> (Loads, Requests) {
            let trigger = || ReconcileTrigger {
                controller: "vector".to_owned(),
                namespace: Some("n".to_owned()),
                name: "logs".to_owned(),
            };
            let before = *lock(&self.requests);
            let mut loads = Loads::default();
            for _ in 0..seconds {
                loads = self.reloads.observe("uid", &self.target, false, trigger());
                sleep(Duration::from_secs(1)).await;
            }
            let after = *lock(&self.requests);
            let requests = Requests {
                lists: after.lists - before.lists,
                logs: after.logs - before.logs,
            };
            (loads, requests)
        }
    }

    fn pods() -> String {
        let status = json!({"containerStatuses": [{
            "name": "vector", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}},
        }]});
        let pod = json!({"metadata": {"name": "one", "uid": "one"}, "status": status});
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [pod]}).to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_never_loads_a_configuration_is_read_seldom_however_often_the_workload_is_reconciled()
     {
        let observer = Observer::new("");
        let (_, first) = observer.reconcile_for(60).await;
        assert!((20..=40).contains(&first.logs), "{first:?}");
        let (loads, _) = observer.reconcile_for(45 * 60).await;
        assert_eq!(problems(&loads), 1);
        let (_, later) = observer.reconcile_for(60 * 60).await;
        let expected = Requests {
            lists: 12,
            logs: 12,
        };
        assert_eq!(later, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn once_all_pods_have_loaded_a_configuration_only_others_are_looked_for() {
        let observer = Observer::new("2026-01-01T00:00:00Z file 1\n");
        let (loads, first) = observer.reconcile_for(10).await;
        assert!(loads.is_complete());
        assert_eq!(first, Requests { lists: 1, logs: 1 });
        // The list that one reconciliation demands comes later, not never.
        sleep(LIST).await;
        assert_eq!(lock(&observer.requests).lists, 2);
        let (_, later) = observer.reconcile_for(600).await;
        assert_eq!(later.logs, 0);
        assert!((35..=41).contains(&later.lists), "{later:?}");
    }
}
