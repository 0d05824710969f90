//! Assembly of the configuration of a workload, with the values of the Secrets that it refers to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use lockstep_controller::{ReadObject, ReconcileError, SecretAccess, SyncRequest};
use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_api::{ConfigCheckMode, Interpolation, VectorContext};
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, PipelineKey, PipelinePart, PipelineProblem,
};

use crate::run::assembled::{self, InProcess, Selected};
use crate::run::names::Names;
use crate::run::pipeline_secrets::{self, PipelineSecrets};
use crate::run::secret_budget;
use crate::run::workload::{RunsPipelines, assembly_options};

/// Pipelines that a workload selects, and the parts that it runs now.
#[derive(Clone)]
pub(crate) struct Selection {
    pub(crate) pipelines: Vec<Arc<SelectablePipeline>>,
    pub(crate) before: BTreeMap<PipelineKey, PipelinePart>,
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

    /// Assembles the configuration, and reads the Secrets that it refers to. A pipeline whose Secret cannot be used runs as
    /// it last ran, with the values that it then had, and the others are not affected.
    /// `held` are the pipelines that run as they last ran for another reason.
    pub(crate) async fn assemble_with_secrets<K: RunsPipelines>(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
        options: &AssemblyOptions,
        selection: Selection,
        held: &BTreeMap<PipelineKey, String>,
    ) -> Result<Assembled, ReconcileError> {
        let mut keys: BTreeSet<_> = held.keys().cloned().collect();
        let mut assembly = self
            .assemble(request, options, selection.clone(), &keys)
            .await?;
        let Selection {
            pipelines,
            mut before,
        } = selection;
        let held = held.iter().map(|(pipeline, message)| PipelineProblem {
            pipeline: pipeline.clone(),
            message: message.clone(),
        });
        let read = pipeline_secrets::read(&self.client, &self.secret_access, &assembly.parts).await;
        read.require_fallback(&before)?;
        let PipelineSecrets {
            mut values,
            mut waiting,
            reads,
            is_incomplete,
        } = read;
        let published = names.published_secrets(request)?;
        for (key, why) in secret_budget::exceeding(&assembly.parts, &values, &before, &published) {
            waiting.entry(key).or_insert(why);
        }
        if waiting.is_empty() {
            assembly.problems.extend(held);
            return Ok(Assembled {
                assembly,
                secrets: values,
                reads,
                is_incomplete,
            });
        }
        before.retain(|key, part| {
            let mut files = part.secrets.iter().map(|secret| &secret.file_name);
            !waiting.contains_key(key) || files.all(|file| published.contains_key(file))
        });
        // All values of such a part are those with which it last ran: of two Secrets, one may have been replaced already.
        let parts = before.iter().filter(|(key, _)| waiting.contains_key(key));
        for secret in parts.flat_map(|(_, part)| &part.secrets) {
            let file = secret.file_name.clone();
            let value = published[&file].clone();
            values.insert(file, value);
        }
        keys.extend(waiting.keys().cloned());
        let selection = Selection { pipelines, before };
        assembly = self.assemble(request, options, selection, &keys).await?;
        values.retain(|file, _| assembly.secrets.iter().any(|it| it.file_name == *file));
        let waiting = waiting.into_iter();
        let problems = waiting.map(|(pipeline, message)| PipelineProblem { pipeline, message });
        assembly.problems.extend(problems.chain(held));
        Ok(Assembled {
            assembly,
            secrets: values,
            reads,
            is_incomplete,
        })
    }

    /// Assembles the configuration on a thread for blocking work: compiling programs takes milliseconds for each.
    async fn assemble<K: RunsPipelines>(
        &self,
        request: &SyncRequest<'_, K>,
        options: &AssemblyOptions,
        selection: Selection,
        waiting: &BTreeSet<PipelineKey>,
    ) -> Result<Assembly, ReconcileError> {
        let options = options.clone();
        let Selection { pipelines, before } = selection;
        let in_process = in_process(request.parent());
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default().to_owned();
        let mut passed = self.passed().remove(&uid).unwrap_or_default();
        let context = Arc::clone(&self.context);
        let waiting = waiting.clone();
        let assembled = tokio::task::spawn_blocking(move || {
            let mut stored = before.clone();
            let pipelines = pipelines.iter().map(Arc::as_ref);
            let selected = Selected::of(&options, pipelines, &waiting, &mut stored);
            let environment = context.environment();
            let assembly = assembled::assemble(
                &options,
                selected,
                &before,
                environment,
                in_process,
                &mut passed,
            );
            (assembly, passed)
        });
        let (assembly, passed) = assembled.await.map_err(|error| ReconcileError::Transient {
            reason: "AssemblyFailed",
            message: format!("the configuration could not be assembled: {error}"),
        })?;
        self.passed().insert(uid, passed);
        assembly.map_err(|error| ReconcileError::Permanent {
            reason: "ConfigurationInvalid",
            message: error.to_string(),
        })
    }

    /// Returns what of a workload decides its configuration.
    pub(crate) fn options<K: RunsPipelines>(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> AssemblyOptions {
        let catalogues = self.context.catalogues();
        let catalogue = catalogues.of_workload(request.raw_parent());
        assembly_options(request.parent(), Arc::clone(catalogue))
    }

    pub(crate) fn passed(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<String>>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a workload.
    pub(crate) fn forget(&self, uid: &str) {
        self.passed().remove(uid);
    }
}

/// Returns what is checked in the controller before a configuration of a workload is published.
fn in_process<K: RunsPipelines>(object: &K) -> InProcess {
    let workload = object.workload();
    let mode = workload.and_then(|it| Some(it.config_check.as_ref()?.effective_mode()));
    if mode == Some(ConfigCheckMode::Pod) {
        return InProcess::Nothing;
    }
    match workload.and_then(|it| it.env_var_interpolation) {
        Some(true) => InProcess::Start(Interpolation::On),
        _ => InProcess::Start(Interpolation::Off),
    }
}
