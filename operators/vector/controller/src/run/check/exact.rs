//! Check of a pipeline before it is stored: the validators of the workloads that select it are asked.
//!
//! ```text
//! pipeline ─► workloads that select it ─► configuration of the pipeline alone ─► their validators ─► result
//! ```
//!
//! Nothing is read from watches, because every replica answers, whether it is the leader or not. A validator is found by its
//! Deployment, which has the labels of its present Pods, and is asked with the credentials in its Secret.

mod workloads;

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource};
use lockstep_controller::SecretAccess;
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_api::{
    ClusterVectorAggregator, ConfigCheck, Vector, VectorAggregator, VectorContext, Workload,
    WorkloadRole,
};
use lockstep_vector_assembly::{Assembly, RunnablePipeline, assemble};
use lockstep_vector_validator::{CERTIFICATE, Configuration, TOKEN};
use serde_json::Value;

use crate::owned;
use crate::run::assemble::pipeline_secrets;
use crate::run::check::exact::workloads::SelectingWorkload;
use crate::run::check::pods::{files, shown};
use crate::run::check::warm_validator::{Access, Reply, Session};
use crate::run::names::Names;
use crate::run::workload::assembly_options;
use crate::run::workload_namespaces::WorkloadNamespaces;
use lockstep_vector_api::WorkloadKind;

/// Checker of pipelines that are not stored yet.
pub struct ExactCheck {
    pub(crate) client: Client,
    context: Arc<VectorContext>,
    installed_kinds: Vec<ApiResource>,
    namespaces: WorkloadNamespaces,
    secret_access: SecretAccess,
}

/// Result of the check of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactCheckResult {
    /// Workloads whose Vector rejects it, each with the reason.
    pub rejections: Vec<String>,
    /// Reasons why a rejection does not count, or why a workload was not asked.
    pub warnings: Vec<String>,
}

/// Answer of the Vector of one workload.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Passed,
    Rejected(String),
    /// There is none, for this reason.
    Unknown(String),
}

impl ExactCheck {
    /// Returns a checker that asks the workloads among the installed kinds, those that take pipelines of other namespaces only in
    /// these namespaces.
    #[must_use]
    pub fn new(
        client: Client,
        context: Arc<VectorContext>,
        installed_kinds: &[ApiResource],
        namespaces: WorkloadNamespaces,
        secret_access: SecretAccess,
    ) -> Self {
        Self {
            client,
            context,
            installed_kinds: installed_kinds.to_vec(),
            namespaces,
            secret_access,
        }
    }

    /// Returns what the Vector of each workload that selects a pipeline says about it. A rejection with the same reason as
    /// that of the pipeline which it replaces is only a warning.
    ///
    /// # Errors
    ///
    /// The workloads cannot be read.
    pub async fn check(
        &self,
        pipeline: &Value,
        old: Option<&Value>,
    ) -> Result<ExactCheckResult, String> {
        let (keys, entry) = selection::index_selectable(pipeline);
        let found = match entry.role {
            None => Vec::new(),
            Some(WorkloadRole::Agent) => self.check_in::<Vector>(&keys, &entry, old).await?,
            Some(WorkloadRole::Aggregator) => {
                let mut found = self
                    .check_in::<VectorAggregator>(&keys, &entry, old)
                    .await?;
                let clustered = self.check_in::<ClusterVectorAggregator>(&keys, &entry, old);
                found.extend(clustered.await?);
                found
            }
        };
        Ok(found
            .into_iter()
            .fold(ExactCheckResult::default(), ExactCheckResult::with))
    }

    /// Returns the answers of the workloads of one kind, each with that about the replaced pipeline if both are rejections.
    async fn check_in<K: WorkloadKind>(
        &self,
        keys: &[String],
        pipeline: &SelectablePipeline,
        old: Option<&Value>,
    ) -> Result<Vec<WorkloadAnswer>, String> {
        let old = old.map(|old| selection::index_selectable(old).1);
        let (client, kinds) = (&self.client, &self.installed_kinds);
        let workloads = SelectingWorkload::<K>::all(client, kinds, keys, pipeline).await?;
        let old = old.as_ref();
        let asked = workloads.into_iter().map(|workload| async move {
            let answer = match self.is_allowed(&workload).await {
                Ok(false) => return None,
                Ok(true) => self.ask(&workload, pipeline).await,
                Err(why) => Answer::Unknown(why),
            };
            let before = match (&answer, old) {
                (Answer::Rejected(_), Some(old)) => Some(self.ask(&workload, old).await),
                _ => None,
            };
            Some(WorkloadAnswer {
                workload: workload.name,
                answer,
                before,
            })
        });
        Ok(join_all(asked).await.into_iter().flatten().collect())
    }

    /// Returns false if a workload may not get the pipelines of other namespaces, and the values of their Secrets: it runs none of
    /// them, and what seems to be its validator may be a Pod of a tenant.
    async fn is_allowed<K: WorkloadKind>(
        &self,
        workload: &SelectingWorkload<K>,
    ) -> Result<bool, String> {
        if !K::TAKES_OTHER_NAMESPACES {
            return Ok(true);
        }
        let names = Names::new(&workload.object, &workload.raw);
        self.namespaces
            .includes(&self.client, &names.namespace)
            .await
    }

    /// Returns what the Vector of a workload says about a pipeline.
    async fn ask<K: WorkloadKind>(
        &self,
        workload: &SelectingWorkload<K>,
        pipeline: &SelectablePipeline,
    ) -> Answer {
        let asked = self.try_ask(workload, pipeline).await;
        asked.unwrap_or_else(Answer::Unknown)
    }

    async fn try_ask<K: WorkloadKind>(
        &self,
        found: &SelectingWorkload<K>,
        pipeline: &SelectablePipeline,
    ) -> Result<Answer, String> {
        let default = Workload::default();
        let workload = found.object.workload().unwrap_or(&default);
        let check = workload.config_check.as_ref();
        if !check.is_some_and(ConfigCheck::is_warm) {
            return Err("it has no `configCheck.warm`".to_owned());
        }
        if !found.is_reconciled {
            return Err("it has just been changed".to_owned());
        }
        let assembly = self.alone(found, pipeline)?;
        let Some(part) = assembly.parts.first() else {
            return Ok(Answer::Passed);
        };
        let access = &self.secret_access;
        let secrets = pipeline_secrets::read(&self.client, access, &assembly.parts).await;
        if let Some(why) = secrets.waiting.into_values().next() {
            return Err(why);
        }
        let is_compressed = workload.compress_config_file.unwrap_or_default();
        let files = files(K::ROLE, &assembly, &secrets.values, is_compressed)?;
        let mut session = self.session(found).await?;
        let shown = |log: &str| {
            let values = secrets.values.values().map(Vec::as_slice);
            part.with_own_names(&shown(log, workload, values))
        };
        match session.ask(&Configuration { files }).await? {
            Reply::Passed => Ok(Answer::Passed),
            Reply::Failed(log) => Ok(Answer::Rejected(shown(&log))),
            Reply::Unfinished(log) => Err(shown(&log)),
        }
    }

    /// Returns the configuration of a workload that would run only this pipeline.
    fn alone<K: WorkloadKind>(
        &self,
        found: &SelectingWorkload<K>,
        pipeline: &SelectablePipeline,
    ) -> Result<Assembly, String> {
        let catalogues = self.context.catalogues();
        // Vector itself validates the configuration, so that the version of the policy decides nothing.
        let catalogue = catalogues.of_workload(None, &found.raw).catalogue;
        let options = assembly_options(&found.object, catalogue);
        let runnable = RunnablePipeline::from(pipeline);
        let assembly = assemble(&options, &[runnable]);
        match assembly.problems.first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(assembly),
        }
    }

    /// Connects to the validator of a workload.
    async fn session<K: WorkloadKind>(
        &self,
        found: &SelectingWorkload<K>,
    ) -> Result<Session, String> {
        let not_ready = || "its validator is not ready".to_owned();
        let unreadable = |error: kube::Error| format!("its validator cannot be read: {error}");
        let Names {
            name, namespace, ..
        } = Names::new(&found.object, &found.raw);
        let name = owned::validator_name(&name);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &namespace);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let (deployment, secret) =
            tokio::try_join!(deployments.get_opt(&name), secrets.get_opt(&name))
                .map_err(unreadable)?;
        let labels = deployment.and_then(|it| it.spec?.template.metadata?.labels);
        let data = secret.and_then(|secret| secret.data);
        let (labels, data) = labels.zip(data).ok_or_else(not_ready)?;
        let value = |key: &str| {
            let value = data.get(key)?;
            std::str::from_utf8(&value.0).ok()
        };
        let (certificate, token) = value(CERTIFICATE).zip(value(TOKEN)).ok_or_else(not_ready)?;
        let access = Access {
            labels: &labels,
            certificate,
            token,
        };
        let session = Session::connect(&self.client, &namespace, &access).await?;
        session.ok_or_else(not_ready)
    }
}

/// Answer of one workload.
struct WorkloadAnswer {
    workload: String,
    answer: Answer,
    /// Answer about the pipeline which is replaced.
    before: Option<Answer>,
}

impl ExactCheckResult {
    /// Adds the answer of a workload.
    fn with(mut self, found: WorkloadAnswer) -> Self {
        let WorkloadAnswer {
            workload,
            answer,
            before,
        } = found;
        match answer {
            Answer::Passed => {}
            Answer::Rejected(why) if before == Some(Answer::Rejected(why.clone())) => {
                let message = format!("the Vector of {workload} rejects it, as before: {why}");
                self.warnings.push(message);
            }
            Answer::Rejected(why) => {
                let message = format!("the Vector of {workload} rejects it: {why}");
                self.rejections.push(message);
            }
            Answer::Unknown(why) => {
                let message = format!(
                    "was validated by rules only, because the Vector of {workload} could not be asked: {why}"
                );
                self.warnings.push(message);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_counts_unless_the_replaced_pipeline_was_rejected_for_the_same_reason() {
        let rejected = |why: &str| Answer::Rejected(why.to_owned());
        for (answer, before, rejections, warnings) in [
            (Answer::Passed, None, 0, 0),
            (rejected("a"), None, 1, 0),
            (rejected("a"), Some(Answer::Passed), 1, 0),
            (rejected("a"), Some(rejected("b")), 1, 0),
            (rejected("a"), Some(rejected("a")), 0, 1),
            (rejected("a"), Some(Answer::Unknown("c".to_owned())), 1, 0),
            (Answer::Unknown("c".to_owned()), None, 0, 1),
        ] {
            let workload = "Vector n/v".to_owned();
            let result = ExactCheckResult::default().with(WorkloadAnswer {
                workload,
                answer,
                before,
            });
            let found = (result.rejections.len(), result.warnings.len());
            assert_eq!(found, (rejections, warnings), "{result:?}");
        }
    }
}
