//! Learning of the catalogue of a workload's version: the workload gets a validator until its image has printed the schema.
//!
//! ```text
//! version without a catalogue ─► validator ─► schema ─► learner
//! ```

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use lockstep_controller::{ReconcileTrigger, SyncRequest};
use lockstep_vector_api::{Catalogues, VectorContext};
use tokio::sync::Mutex;

use crate::learning::{
    CatalogueLearner, ImageSchema, LearningState, SchemaSource, SchemaSourceError, VersionToLearn,
};
use crate::run::check::warm_validator::{Session, WarmValidator};
use lockstep_vector_api::WorkloadKind;

/// Section of the policy.
const SECTION: &str = "vector";

/// Advice for a user whose image cannot be asked.
const REMEDY: &str = "add the catalogue to the ConfigMap `lockstep-vector-catalogues`, as docs/vector/versions.md describes";

/// Learning of the catalogues of a kind of workloads.
pub(crate) struct CatalogueLearning {
    pub(crate) context: Arc<VectorContext>,
    /// None if the controller does not know its namespace.
    pub(crate) learner: Option<Arc<CatalogueLearner>>,
}

/// State of the catalogue of a workload that has none.
#[derive(Default)]
pub(crate) struct Learning {
    /// If true, the workload needs a validator.
    pub(crate) needs_validator: bool,
    wanted: Option<VersionToLearn>,
    /// State for people. None if there is nothing to learn.
    pub(crate) state: Option<String>,
    /// Time until the next step.
    pub(crate) next: Option<Duration>,
}

impl CatalogueLearning {
    /// Returns the state of the catalogue of a workload, if the policy tells to learn it.
    pub(crate) async fn begin<K: WorkloadKind>(&self, request: &SyncRequest<'_, K>) -> Learning {
        let raw = request.raw_parent();
        let of = |field: &str| raw["metadata"][field].as_str();
        let catalogues = self.context.catalogues();
        let is_learned = Catalogues::are_learned(request.policy().settings(SECTION));
        if let Some(learner) = &self.learner {
            let version = catalogues.known_version_of_workload(raw);
            learner.uses(of("uid").unwrap_or_default(), version);
        }
        let Some((version, image)) = catalogues.missing_of_workload(raw).filter(|_| is_learned)
        else {
            return Learning::default();
        };
        let Some(learner) = &self.learner else {
            let state = format!(
                "the catalogue of Vector {version} cannot be learned, because the controller does not run in a Pod; {REMEDY}"
            );
            return Learning::told(state, None);
        };
        let wanted = VersionToLearn {
            version,
            image,
            trigger: ReconcileTrigger {
                controller: K::KIND.to_lowercase(),
                namespace: of("namespace").map(str::to_owned),
                name: of("name").unwrap_or_default().to_owned(),
            },
        };
        match learner.state_of(&wanted).await {
            LearningState::NeedsSchema => Learning {
                needs_validator: true,
                wanted: Some(wanted),
                ..Learning::default()
            },
            LearningState::Running(state) => Learning {
                needs_validator: true,
                ..Learning::told(state, None)
            },
            LearningState::Written(state) => Learning::told(state, None),
            LearningState::Failed(why, next) => Learning::failed(&wanted, &why, next),
        }
    }

    /// Asks the image for its schema, if that is needed and the validator is ready.
    pub(crate) async fn ask(
        &self,
        learning: &mut Learning,
        client: &Client,
        namespace: &str,
        validator: &WarmValidator,
    ) {
        let (Some(wanted), Some(learner)) = (learning.wanted.take(), &self.learner) else {
            return;
        };
        let version = wanted.version;
        let waiting = match Session::open(client, namespace, validator).await {
            Ok(Some(session)) => {
                learner.learn(wanted, SessionSource(Mutex::new(session)));
                let state = format!("the catalogue of Vector {version} is being made");
                learning.state = Some(state);
                return;
            }
            Ok(None) => validator.state.clone().unwrap_or_default(),
            Err(why) => why,
        };
        let told = match learner.wait(&wanted, &waiting) {
            LearningState::Failed(why, next) => Learning::failed(&wanted, &why, next),
            LearningState::NeedsSchema | LearningState::Running(_) | LearningState::Written(_) => {
                Learning::told(
                    format!(
                        "the catalogue of Vector {version} is learned once the validator is ready: {waiting}"
                    ),
                    Some(CatalogueLearner::WAIT_AGAIN),
                )
            }
        };
        learning.state = told.state;
        learning.next = told.next;
    }

    /// Forgets a workload.
    pub(crate) fn release(&self, uid: &str) {
        if let Some(learner) = &self.learner {
            learner.uses(uid, None);
        }
    }
}

impl Learning {
    fn told(state: String, next: Option<Duration>) -> Self {
        Self {
            state: Some(state),
            next,
            ..Self::default()
        }
    }

    fn failed(wanted: &VersionToLearn, why: &str, next: Duration) -> Self {
        let version = wanted.version;
        let state =
            format!("the catalogue of Vector {version} could not be learned: {why}; {REMEDY}");
        Self::told(state, Some(next))
    }
}

/// Schema that a validator returns.
struct SessionSource(Mutex<Session>);

#[async_trait]
impl SchemaSource for SessionSource {
    async fn schema(&self) -> Result<ImageSchema, SchemaSourceError> {
        let printed = self.0.lock().await.schema().await;
        let (version, schema) = printed.map_err(SchemaSourceError)?;
        Ok(ImageSchema {
            schema,
            version: Some(version),
        })
    }
}
