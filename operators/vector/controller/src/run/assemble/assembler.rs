//! Assembly of the configuration of a workload, with the values of the Secrets that it refers to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use lockstep_controller::{ReadObject, ReconcileError, SecretAccess, SyncRequest};
use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_api::{
    ConfigCheckMode, Interpolation, UsedCatalogue, VectorContext, always_interpolates, is_kaasops,
};
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, InternalMetrics, PipelineKey, PipelineProblem, StartError,
};
use tokio::task::JoinError;

use crate::run::assemble::pipeline_secrets::{self, PipelineSecrets};
use crate::run::assemble::quotas::Quotas;
use crate::run::assemble::start::{Candidate, InProcess, Selected, Start, StartedAssembly};
use crate::run::collect::published::Published;
use crate::run::workload::assembly_options;
use lockstep_vector_api::WorkloadKind;

/// Pipelines that a workload selects, and what it runs now.
#[derive(Clone)]
pub(crate) struct Selection {
    pub(crate) pipelines: Vec<Arc<SelectablePipeline>>,
    pub(crate) published: Arc<Published>,
    /// Pipelines that run as they last ran, and why.
    pub(crate) held: BTreeMap<PipelineKey, String>,
}

impl Selection {
    /// Returns the selection with further pipelines that run as they last ran.
    pub(crate) fn holding(mut self, pipelines: &BTreeMap<PipelineKey, String>) -> Self {
        let pipelines = pipelines.iter();
        self.held
            .extend(pipelines.map(|(key, why)| (key.clone(), why.clone())));
        self
    }
}

/// Assembler of the configurations of all workloads of a kind.
pub(crate) struct Assembler {
    pub(crate) client: Client,
    context: Arc<VectorContext>,
    secret_access: SecretAccess,
    /// Fingerprints of the parts that passed the check of the start, by UID of the workload.
    passed: Mutex<HashMap<String, BTreeSet<String>>>,
}

/// Configuration of a workload, and the values of the Secrets that it refers to.
pub(crate) struct Assembled {
    pub(crate) assembly: Assembly,
    /// Values by the name of the file.
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    /// The Secrets as they were read.
    pub(crate) reads: Vec<ReadObject>,
    /// If true, a Secret is to be read again soon.
    pub(crate) is_incomplete: bool,
}

impl Assembler {
    pub(crate) fn new(
        client: Client,
        context: Arc<VectorContext>,
        secret_access: SecretAccess,
    ) -> Self {
        Self {
            client,
            context,
            secret_access,
            passed: Mutex::default(),
        }
    }

    /// Assembles the configuration, with the values of the Secrets that it refers to. A pipeline whose Secret cannot be used, or
    /// with whose values Vector would not start, runs as it last ran, with the values that it then had, and the others are not
    /// affected.
    pub(crate) async fn assemble_with_secrets<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        options: &AssemblyOptions,
        selection: Selection,
    ) -> Result<Assembled, ReconcileError> {
        let published = Arc::clone(&selection.published);
        let held = selection.held.clone();
        let mut candidate = self.render(options, selection).await?;
        let parts = &candidate.rendered.parts;
        let read = pipeline_secrets::read(&self.client, &self.secret_access, parts).await;
        read.require_fallback(&published)?;
        let PipelineSecrets {
            values,
            mut waiting,
            reads,
            is_incomplete,
        } = read;
        let quotas = Quotas::read(request.policy().settings("vector"));
        for (key, why) in quotas.exceeding(parts, &values, &published) {
            waiting.entry(key).or_insert(why);
        }
        candidate.values = values;
        let keys = waiting.keys().cloned().collect();
        let started = self.start(request, options, candidate, keys, published);
        let StartedAssembly {
            mut assembly,
            mut values,
            is_incomplete: is_unchecked,
        } = started.await?;
        values.retain(|file, _| assembly.secrets.iter().any(|it| it.file_name == *file));
        let others = waiting.into_iter().chain(held);
        let others = others.map(|(pipeline, message)| PipelineProblem { pipeline, message });
        assembly.problems.extend(others);
        Ok(Assembled {
            assembly,
            secrets: values,
            reads,
            is_incomplete: is_incomplete || is_unchecked,
        })
    }

    /// Renders the parts on a thread for blocking work: there may be thousands.
    async fn render(
        &self,
        options: &AssemblyOptions,
        selection: Selection,
    ) -> Result<Candidate, ReconcileError> {
        let options = options.clone();
        let rendering = tokio::task::spawn_blocking(move || {
            let Selection {
                pipelines,
                published,
                held,
            } = selection;
            let held: BTreeSet<_> = held.into_keys().collect();
            let pipelines = pipelines.iter().map(Arc::as_ref);
            let selected = Selected::new(&options, pipelines, &held, &published.parts);
            Candidate::render(&options, selected, &published)
        });
        rendering.await.map_err(|error| failed(&error))
    }

    /// Checks the start on a thread for blocking work: compiling programs takes milliseconds for each. `waiting` are pipelines
    /// that run as they last ran.
    async fn start<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        options: &AssemblyOptions,
        mut candidate: Candidate,
        waiting: BTreeSet<PipelineKey>,
        published: Arc<Published>,
    ) -> Result<StartedAssembly, ReconcileError> {
        let options = options.clone();
        let in_process = in_process(request);
        let unmeasured = self.catalogue(request).unmeasured;
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default().to_owned();
        let mut passed = self.passed().remove(&uid).unwrap_or_default();
        let context = Arc::clone(&self.context);
        let starting = tokio::task::spawn_blocking(move || {
            candidate.fall_back(&options, &waiting, &published);
            let start = Start {
                options: &options,
                environment: context.environment(),
                in_process,
                unmeasured,
                published: &published,
                passed: &mut passed,
            };
            (start.assemble(candidate), passed)
        });
        let (started, passed) = starting.await.map_err(|error| failed(&error))?;
        self.passed().insert(uid, passed);
        started.map_err(|error| match error {
            StartError::Options(_) => ReconcileError::Permanent {
                reason: "ConfigurationInvalid",
                message: error.to_string(),
            },
            StartError::Unclear(_) => {
                ReconcileError::transient("ConfigurationNotChecked", error.to_string())
            }
        })
    }

    /// Returns what of a workload decides its configuration.
    pub(crate) fn options<K: WorkloadKind>(&self, request: &SyncRequest<'_, K>) -> AssemblyOptions {
        let settings = request.policy().settings("vector");
        let mut options = assembly_options(request.parent(), self.catalogue(request).catalogue);
        if let Some(metrics) = &mut options.internal_metrics
            && is_kaasops(settings)
        {
            *metrics = InternalMetrics::ReplacedByAll;
        }
        options
    }

    /// Returns the catalogue for which the pipelines of a workload are validated.
    fn catalogue<K: WorkloadKind>(&self, request: &SyncRequest<'_, K>) -> UsedCatalogue {
        let settings = request.policy().settings("vector");
        let catalogues = self.context.catalogues();
        catalogues.of_workload(settings, request.raw_parent())
    }

    pub(crate) fn passed(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<String>>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a workload.
    pub(crate) fn forget(&self, uid: &str) {
        self.passed().remove(uid);
    }
}

fn failed(error: &JoinError) -> ReconcileError {
    let message = format!("the configuration could not be assembled: {error}");
    ReconcileError::transient("AssemblyFailed", message)
}

/// Returns what is checked in the controller before a configuration of a workload is published.
fn in_process<K: WorkloadKind>(request: &SyncRequest<'_, K>) -> InProcess {
    let workload = request.parent().workload();
    let is_set = workload.and_then(|workload| workload.env_var_interpolation) == Some(true);
    let settings = request.policy().settings("vector");
    let interpolation = if is_set || always_interpolates(settings, request.raw_parent()) {
        Interpolation::On
    } else {
        Interpolation::Off
    };
    let mode = workload.and_then(|it| Some(it.config_check.as_ref()?.effective_mode()));
    if mode == Some(ConfigCheckMode::Pod) {
        return InProcess::SecretValues(interpolation);
    }
    InProcess::Start(interpolation)
}
