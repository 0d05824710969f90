//! Learner: asks an image for its schema, and writes the catalogue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use lockstep_controller::{ControllerRegistry, NamedConfigMap, ReconcileTrigger};
use lockstep_vector_api::VectorVersion;
use tokio::sync::Semaphore;

use crate::learning::attempts::{Attempt, Attempts};
use crate::learning::learned_catalogue::{UnusableSchema, catalogue_of};
use crate::learning::learned_catalogues::{LearnedCatalogues, LearnedEntry, Origin};
use crate::learning::schema_source::SchemaSource;

/// Field manager of the `ConfigMap`: the catalogues that users have added keep theirs.
const MANAGER: &str = "lockstep-catalogues";

/// Number of images that are asked at the same time. A schema has some megabytes, and its catalogue takes a second of CPU
/// time.
const MAX_RUNNING: usize = 2;

/// Time in which a schema must arrive and become a catalogue.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Learner of the catalogues of all workloads.
///
/// # Guarantees
///
/// - No version is learned twice: before each attempt, the `ConfigMap` is read.
/// - At most two images are asked at the same time.
/// - A failed attempt is repeated after a minute, and later after up to six hours.
pub struct CatalogueLearner {
    config_map: NamedConfigMap,
    /// Controllers in whose queues workloads are put when their attempt has ended.
    controllers: ControllerRegistry,
    running: Arc<Semaphore>,
    /// One at a time: each write begins with what the last one has written.
    writes: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attempts: Attempts,
    /// Versions that workloads run, by UID of the workload.
    in_use: BTreeMap<String, VectorVersion>,
}

/// Version without a catalogue that a workload runs.
#[derive(Clone, Debug)]
pub struct VersionToLearn {
    /// Version that the tag of the image names.
    pub version: VectorVersion,
    /// Image of the workload.
    pub image: String,
    /// Workload.
    pub trigger: ReconcileTrigger,
}

/// State of a version that has no catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearningState {
    /// The schema of the image is needed: [`CatalogueLearner::learn`] is to be called.
    NeedsSchema,
    /// The image is being asked.
    Running(String),
    /// The catalogue is written. It is used once the kubelet has updated the files.
    Written(String),
    /// The last attempt has failed. The next one begins after this time.
    Failed(String, Duration),
}

impl CatalogueLearner {
    /// Time after which a workload is reconciled again whose image cannot be asked yet.
    pub const WAIT_AGAIN: Duration = Duration::from_mins(1);

    /// Returns a learner that writes into this `ConfigMap`.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: &str,
        config_map: &str,
        controllers: ControllerRegistry,
    ) -> Self {
        Self {
            config_map: NamedConfigMap::new(client, namespace, config_map, MANAGER),
            controllers,
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
            writes: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Records the version that a workload runs: its catalogue is not removed to make space for others.
    pub fn uses(&self, uid: &str, version: Option<VectorVersion>) {
        let mut state = self.state();
        match version {
            Some(version) => state.in_use.insert(uid.to_owned(), version),
            None => state.in_use.remove(uid),
        };
    }

    /// Returns the state of a version without a catalogue. If an attempt is due, the `ConfigMap` is read first.
    pub async fn state_of(&self, wanted: &VersionToLearn) -> LearningState {
        let VersionToLearn { version, image, .. } = wanted;
        let attempt = || self.state().attempts.state(*version, image, Instant::now());
        let mut found = attempt();
        if found == Attempt::Due {
            match self.stored().await {
                Ok(stored) if stored.has(*version) => {
                    let now = Instant::now();
                    self.state().attempts.end(*version, image, Ok(()), now);
                    found = attempt();
                }
                Ok(_) => {}
                Err(error) => return LearningState::Failed(error, TIMEOUT),
            }
        }
        let name = self.config_map.name();
        match found {
            Attempt::Due => LearningState::NeedsSchema,
            Attempt::Running => {
                LearningState::Running(format!("the catalogue of Vector {version} is being made"))
            }
            Attempt::Written => LearningState::Written(format!(
                "the catalogue of Vector {version} is in the ConfigMap {name}, and is used once the kubelet has updated the files"
            )),
            Attempt::Failed(message, next) => LearningState::Failed(message, next),
        }
    }

    /// Records that an image cannot be asked yet, and why. After five minutes, the attempt has failed.
    pub fn wait(&self, wanted: &VersionToLearn, why: &str) -> LearningState {
        let VersionToLearn { version, image, .. } = wanted;
        let now = Instant::now();
        let mut state = self.state();
        if !state.attempts.wait(*version, image, now) {
            let why = format!("the image could not be asked: {why}");
            state.attempts.end(*version, image, Err(why), now);
        }
        match state.attempts.state(*version, image, now) {
            Attempt::Failed(message, next) => LearningState::Failed(message, next),
            Attempt::Due | Attempt::Running | Attempt::Written => LearningState::NeedsSchema,
        }
    }

    /// Begins to learn a version, if no attempt runs. The workload is reconciled when it has ended.
    pub fn learn(self: &Arc<Self>, wanted: VersionToLearn, source: impl SchemaSource) {
        if !self.state().attempts.begin(wanted.version) {
            return;
        }
        let learner = Arc::clone(self);
        tokio::spawn(async move {
            let VersionToLearn {
                version,
                image,
                trigger,
            } = wanted;
            let result = match learner.running.acquire().await {
                Ok(_permit) => {
                    let attempt = learner.attempt(version, &image, &source);
                    let attempt = tokio::time::timeout(TIMEOUT, attempt).await;
                    attempt.unwrap_or_else(|_| {
                        Err(format!("the image did not respond within {TIMEOUT:?}"))
                    })
                }
                Err(error) => Err(error.to_string()),
            };
            match &result {
                Ok(()) => tracing::info!(%version, image, "the catalogue was learned"),
                Err(error) => {
                    tracing::warn!(%version, image, error, "the catalogue could not be learned");
                }
            }
            let now = Instant::now();
            learner.state().attempts.end(version, &image, result, now);
            let namespace = trigger.namespace.as_deref();
            // A controller that does not run reconciles every object when it starts.
            let _ = learner
                .controllers
                .enqueue(&trigger.controller, namespace, &trigger.name);
        });
    }

    async fn attempt(
        &self,
        version: VectorVersion,
        image: &str,
        source: &impl SchemaSource,
    ) -> Result<(), String> {
        let schema = source.schema().await.map_err(|error| error.to_string())?;
        let made = tokio::task::spawn_blocking(move || catalogue_of(&schema, version));
        let made: Result<Vec<u8>, UnusableSchema> = made.await.map_err(|it| it.to_string())?;
        let content = made.map_err(|error| error.to_string())?;
        self.write(version, image, content).await
    }

    /// Writes a catalogue beside the others.
    async fn write(
        &self,
        version: VectorVersion,
        image: &str,
        content: Vec<u8>,
    ) -> Result<(), String> {
        let _alone = self.writes.lock().await;
        let mut stored = self.stored().await?;
        let entry = LearnedEntry {
            content,
            origin: Origin {
                image: image.to_owned(),
                last_used: Timestamp::now(),
            },
        };
        let in_use = self.state().in_use.values().copied().collect();
        let removed = stored.insert(version, entry, &in_use);
        let removed = removed.map_err(|error| error.to_string())?;
        self.config_map.apply(stored.to_config_map()).await?;
        for version in &removed {
            tracing::warn!(%version, "a learned catalogue was removed, to make space: no workload runs its version");
        }
        self.state().attempts.removed(&removed);
        Ok(())
    }

    async fn stored(&self) -> Result<LearnedCatalogues, String> {
        let found = self.config_map.read().await;
        found.map(LearnedCatalogues::new)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::learning::learned_catalogue::tests::{schema, version};
    use crate::learning::schema_source::{ImageSchema, SchemaSourceError};

    /// API server with one `ConfigMap`.
    #[derive(Default)]
    struct Server {
        stored: Mutex<Option<Value>>,
        writes: AtomicUsize,
    }

    impl Server {
        fn client(self: &Arc<Self>) -> Client {
            let server = Arc::clone(self);
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = Arc::clone(&server);
                async move {
                    let (parts, body) = request.into_parts();
                    if parts.method == Method::PATCH {
                        let body = body.collect_bytes().await.expect("a body");
                        let mut applied: Value = serde_json::from_slice(&body).expect("JSON");
                        applied["metadata"]["resourceVersion"] = json!("1");
                        *server.stored.lock().expect("no panic") = Some(applied);
                        server.writes.fetch_add(1, Ordering::SeqCst);
                    }
                    let stored = server.stored.lock().expect("no panic").clone();
                    let (code, body) = match stored {
                        Some(stored) => (200, stored),
                        None => (
                            404,
                            json!({"kind": "Status", "code": 404, "reason": "NotFound"}),
                        ),
                    };
                    let response = Response::builder().status(code);
                    response.body(Body::from(body.to_string().into_bytes()))
                }
            });
            Client::new(service, "lockstep-system")
        }

        fn writes(&self) -> usize {
            self.writes.load(Ordering::SeqCst)
        }
    }

    /// Source that counts how many are asked at the same time, and waits until it is released.
    #[derive(Clone)]
    struct Source {
        asked: Arc<AtomicUsize>,
        release: Arc<Semaphore>,
        schema: Result<ImageSchema, SchemaSourceError>,
    }

    impl Source {
        fn new(schema: Result<Vec<u8>, &str>) -> Self {
            let schema = schema.map(|schema| ImageSchema {
                schema,
                version: None,
            });
            Self {
                asked: Arc::default(),
                release: Arc::new(Semaphore::new(0)),
                schema: schema.map_err(|error| SchemaSourceError(error.to_owned())),
            }
        }
    }

    #[async_trait]
    impl SchemaSource for Source {
        async fn schema(&self) -> Result<ImageSchema, SchemaSourceError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.release.acquire().await.expect("open").forget();
            self.schema.clone()
        }
    }

    fn learner(server: &Arc<Server>) -> Arc<CatalogueLearner> {
        let controllers = ControllerRegistry::default();
        let learner = CatalogueLearner::new(
            server.client(),
            "lockstep-system",
            "catalogues",
            controllers,
        );
        Arc::new(learner)
    }

    fn wanted(name: &str) -> VersionToLearn {
        VersionToLearn {
            version: version(name),
            image: format!("vector:{name}.0"),
            trigger: ReconcileTrigger {
                controller: "vector".to_owned(),
                namespace: Some("n".to_owned()),
                name: "logs".to_owned(),
            },
        }
    }

    /// Waits until a version has another state than that of a running attempt.
    async fn ended(learner: &CatalogueLearner, wanted: &VersionToLearn) -> LearningState {
        loop {
            match learner.state_of(wanted).await {
                LearningState::Running(_) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    }

    #[tokio::test]
    async fn a_version_is_learned_once_also_by_the_next_leader() {
        let server = Arc::new(Server::default());
        let source = Source::new(Ok(schema()));
        source.release.add_permits(10);
        let (first, wanted) = (learner(&server), wanted("0.48"));
        assert_eq!(first.state_of(&wanted).await, LearningState::NeedsSchema);
        first.learn(wanted.clone(), source.clone());
        first.learn(wanted.clone(), source.clone());
        let LearningState::Written(text) = ended(&first, &wanted).await else {
            panic!("it was learned");
        };
        assert!(text.contains("is in the ConfigMap catalogues"), "{text}");
        assert_eq!(
            (source.asked.load(Ordering::SeqCst), server.writes()),
            (1, 1)
        );
        let stored = server.stored.lock().expect("no panic").clone();
        assert!(stored.expect("a ConfigMap")["binaryData"]["0.48.json.gz"].is_string());
        // Another replica.
        let second = learner(&server);
        assert!(matches!(
            second.state_of(&wanted).await,
            LearningState::Written(_)
        ));
        assert_eq!(server.writes(), 1);
    }

    #[tokio::test]
    async fn a_failure_is_reported_with_the_time_of_the_next_attempt() {
        let server = Arc::new(Server::default());
        let (learner, wanted) = (learner(&server), wanted("0.48"));
        for (source, expected) in [
            (
                Source::new(Err("the image cannot be pulled")),
                "the image cannot be pulled",
            ),
            (Source::new(Ok(b"{}".to_vec())), "vector generate-schema"),
        ] {
            source.release.add_permits(1);
            learner.state().attempts = Attempts::default();
            learner.learn(wanted.clone(), source);
            let LearningState::Failed(message, next) = ended(&learner, &wanted).await else {
                panic!("it fails");
            };
            assert!(message.contains(expected), "{message}");
            assert!(next <= Duration::from_mins(1) && next > Duration::from_secs(30));
        }
        assert_eq!(server.writes(), 0);
    }

    #[tokio::test]
    async fn at_most_two_images_are_asked_at_the_same_time() {
        let server = Arc::new(Server::default());
        let learner = learner(&server);
        let source = Source::new(Err("no"));
        let all = ["0.40", "0.41", "0.42", "0.43"].map(wanted);
        for wanted in &all {
            learner.learn(wanted.clone(), source.clone());
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(source.asked.load(Ordering::SeqCst), MAX_RUNNING);
        source.release.add_permits(all.len());
        for wanted in &all {
            assert!(matches!(
                ended(&learner, wanted).await,
                LearningState::Failed(..)
            ));
        }
        assert_eq!(source.asked.load(Ordering::SeqCst), all.len());
    }
}
