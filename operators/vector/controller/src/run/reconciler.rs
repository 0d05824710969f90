//! Reconciler of the kinds that run pipelines.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OwnedType, ReadObject, ReconcileError, ReconcileOutput,
    Reconciler, Reference, SyncRequest, Watch,
};
use lockstep_shared_validation::{ValidationRequest, ValidationResult};
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_api::{
    ConfigCheckMode, Interpolation, RunnerKind, VectorContext, port_allocation,
};
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, DataLayout, DataMoves, PipelineKey, PipelinePart, PipelineProblem,
};
use serde_json::{Map, Value, json};

use crate::owned::{self, ChangeAction, Cluster, ClusterScopedNames, Publication};
use crate::run::assembled::{self, InProcess, Selected};
use crate::run::checked::{Checked, PodChecks};
use crate::run::cluster_scoped_names::PlainNames;
use crate::run::names::Names;
use crate::run::observed::Lookup;
use crate::run::pipeline_secrets::{self, PipelineSecrets};
use crate::run::pipeline_statuses::{self, Running};
use crate::run::pod_refresh::{self, Refresh};
use crate::run::published_changes::Published;
use crate::run::workload::{RunsPipelines, assembly_options};
use crate::run::workload_status::{LONGEST_PROBLEM, Outcome};
use crate::run::{kaasops, publication, secret_budget, stored_parts};
use crate::validate_only::{ValidateOnlyReconciler, shortened};

/// Finalizer of the workloads.
const FINALIZER: &str = "observability.kaasops.io/finalizer";

/// Time after which statuses of pipelines and annotations of Pods are written again that could not be written.
const WRITE_AGAIN: Duration = Duration::from_secs(30);

/// Reconciler that runs the pipelines of a kind of workloads.
pub struct WorkloadReconciler<K> {
    validation: ValidateOnlyReconciler<K>,
    client: Client,
    context: Arc<VectorContext>,
    /// Installed kinds of pipelines.
    pipelines: Vec<ApiResource>,
    pub(crate) cluster: Cluster,
    plain_names: PlainNames,
    /// Image with this program, if it is known.
    image: Option<String>,
    /// Fingerprints of the parts that passed the check of the start, by UID of the workload.
    passed: Mutex<HashMap<String, BTreeSet<String>>>,
    pub(crate) checks: PodChecks,
}

impl<K: RunsPipelines> WorkloadReconciler<K> {
    /// Returns a reconciler. `installed` are the kinds that exist in the cluster, and `image` is the one with this program:
    /// without it, no data is moved when components get other names.
    #[must_use]
    pub fn new(
        client: Client,
        context: Arc<VectorContext>,
        installed: &[ApiResource],
        has_pod_monitors: bool,
        image: Option<String>,
        checks: PodChecks,
    ) -> Self {
        let is_pipeline =
            |resource: &&ApiResource| port_allocation::PIPELINES.contains(&&*resource.kind);
        let catalogues = context.catalogues();
        Self {
            validation: ValidateOnlyReconciler::workloads(catalogues.digest()),
            client,
            pipelines: installed.iter().filter(is_pipeline).cloned().collect(),
            cluster: Cluster {
                vector_version: lockstep_vector_api::Catalogue::shipped().number(),
                has_pod_monitors,
                cluster_scoped_names: ClusterScopedNames::default(),
            },
            context,
            plain_names: PlainNames::default(),
            image,
            passed: Mutex::default(),
            checks,
        }
    }

    /// Returns the pipelines that concern the workload.
    fn group(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Vec<Arc<SelectablePipeline>>, ReconcileError> {
        let keys = selection::keys(request.raw_parent(), K::KIND_OF_RUNNER);
        let mut group = Vec::new();
        for resource in &self.pipelines {
            let pipelines: Vec<Arc<SelectablePipeline>> =
                request.related().by_index(resource, &keys)?;
            group.extend(pipelines);
        }
        Ok(group)
    }

    /// Reports to the pipelines what is published, as `before` says: what is about to be published is reported after that,
    /// by the reconciliation that follows the write. Returns false if a report must be written again.
    async fn report(
        &self,
        workload: &Value,
        group: &[Arc<SelectablePipeline>],
        generations: BTreeMap<PipelineKey, i64>,
        assembly: &Assembly,
    ) -> bool {
        let name = selection::workload_name(workload);
        let problems = assembly.problems.iter().map(|it| {
            let message = shortened(it.message.clone(), LONGEST_PROBLEM);
            (it.pipeline.clone(), message)
        });
        let running = Running {
            workload: &name,
            generations,
            problems: problems.collect(),
        };
        let now = json!(Time(k8s_openapi::jiff::Timestamp::now()));
        let selects = |pipeline: &SelectablePipeline| selection::selects(workload, pipeline);
        let reports = running.reports(group, selects, now.as_str().unwrap_or_default());
        pipeline_statuses::write(&self.client, &self.pipelines, &name, reports).await
    }

    /// Refreshes the Pods if Secrets among the children have been published since the last time. Returns the versions of
    /// these Secrets, and the result.
    async fn refresh_pods(
        &self,
        request: &SyncRequest<'_, K>,
        namespace: &str,
        children: &[Value],
    ) -> Option<(String, Refresh)> {
        let raw = request.raw_parent();
        let observed: Vec<_> = request.children().iter().collect();
        let refreshed = raw["status"]["refreshedSecretVersions"].as_str();
        let name = raw["metadata"]["name"].as_str().unwrap_or_default();
        let labels = owned::labels_of_pods(K::KIND_OF_RUNNER, name);
        // Pods that check configurations have Secrets of their own.
        let mounted = children.iter().filter(|child| {
            let of_child = &child["metadata"]["labels"];
            labels
                .iter()
                .all(|(label, value)| of_child[label] == **value)
        });
        let versions = pod_refresh::new_versions(mounted, &observed, refreshed)?;
        let result = pod_refresh::refresh(&self.client, namespace, &labels, &versions).await;
        Some((versions, result))
    }

    /// Assembles the configuration, and reads the Secrets that it refers to. A pipeline whose Secret cannot be used runs as
    /// it last ran, with the values that it then had, and the others are not affected.
    /// `held` are the pipelines that run as they last ran for another reason.
    pub(crate) async fn assemble_with_secrets(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
        options: &AssemblyOptions,
        pipelines: Vec<Arc<SelectablePipeline>>,
        mut before: BTreeMap<PipelineKey, PipelinePart>,
        held: &BTreeMap<PipelineKey, String>,
    ) -> Result<Assembled, ReconcileError> {
        let mut keys: BTreeSet<_> = held.keys().cloned().collect();
        let mut assembly = self
            .assemble(request, options, pipelines.clone(), &keys, before.clone())
            .await?;
        let held = held.iter().map(|(pipeline, message)| PipelineProblem {
            pipeline: pipeline.clone(),
            message: message.clone(),
        });
        let PipelineSecrets {
            mut values,
            mut waiting,
            reads,
        } = pipeline_secrets::read(&self.client, &assembly.parts).await?;
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
        let assembled = self.assemble(request, options, pipelines, &keys, before);
        assembly = assembled.await?;
        values.retain(|file, _| assembly.secrets.iter().any(|it| it.file_name == *file));
        let waiting = waiting.into_iter();
        let problems = waiting.map(|(pipeline, message)| PipelineProblem { pipeline, message });
        assembly.problems.extend(problems.chain(held));
        Ok(Assembled {
            assembly,
            secrets: values,
            reads,
        })
    }

    /// Assembles the configuration on a thread for blocking work: compiling programs takes milliseconds for each.
    async fn assemble(
        &self,
        request: &SyncRequest<'_, K>,
        options: &AssemblyOptions,
        pipelines: Vec<Arc<SelectablePipeline>>,
        waiting: &BTreeSet<PipelineKey>,
        before: BTreeMap<PipelineKey, PipelinePart>,
    ) -> Result<Assembly, ReconcileError> {
        let options = options.clone();
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

    /// Returns true if an init container can move the data of the workload: the old Pod of a `Deployment` may still use it
    /// when the new one starts.
    fn may_move_data(&self, object: &K) -> bool {
        let is_wanted = object.workload().and_then(|it| it.migrate_data);
        let is_replaced_first = K::KIND_OF_RUNNER == RunnerKind::Agent || object.is_persistent();
        self.image.is_some() && is_wanted.unwrap_or(true) && is_replaced_first
    }

    pub(crate) fn passed(&self) -> std::sync::MutexGuard<'_, HashMap<String, BTreeSet<String>>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<K: RunsPipelines> Reconciler for WorkloadReconciler<K> {
    type Kind = K;

    /// Keeps the workload until its entries in the statuses of pipelines are removed.
    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    fn owns(&self) -> Vec<OwnedType> {
        owned::owned_types(K::KIND_OF_RUNNER, self.cluster.has_pod_monitors)
    }

    fn watches(&self) -> Vec<Watch> {
        let pipelines = self.pipelines.iter().map(|resource| {
            let keys = |workload: &Value| {
                let keys = selection::keys(workload, K::KIND_OF_RUNNER);
                keys.into_iter().map(Reference::IndexKey).collect()
            };
            Watch::dynamic(resource.clone(), keys).index_by(selection::index_selectable)
        });
        pipelines.collect()
    }

    fn rbac_rules(&self) -> Vec<Value> {
        rbac_rules(K::KIND_OF_RUNNER)
    }

    fn on_validated(
        &self,
        request: &ValidationRequest<'_>,
        result: &ValidationResult,
    ) -> Map<String, Value> {
        self.validation.on_validated(request, result)
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let (object, raw) = (request.parent(), request.raw_parent());
        let names = Names::of(object, raw);
        let before = stored_parts::read(names.stored(request, stored_parts::KEY)?.as_deref());
        let published = before.iter();
        let published = published
            .map(|(key, part)| (key.clone(), part.generation))
            .collect();
        let group = self.group(request)?;
        let mut pipelines = group.clone();
        pipelines.retain(|pipeline| selection::selects(raw, pipeline));
        let uid = raw["metadata"]["uid"].as_str().unwrap_or_default();
        let lookup = Lookup {
            client: &self.client,
            children: request.children(),
            namespace: &names.namespace,
            name: &names.name,
            uid,
        };
        let observed = lookup
            .observe(K::KIND_OF_RUNNER, object.is_persistent())
            .await?;
        let may_move = self.may_move_data(object);
        let present = observed.names(&names.name);
        let catalogue = self.context.catalogues().of_workload(raw);
        let options = assembly_options(object, catalogue);
        let layout = present.layout(options.layout(), may_move);
        let options = options.in_layout(layout);
        let Checked {
            assembled:
                Assembled {
                    assembly,
                    secrets,
                    reads,
                },
            checks,
        } = self
            .checked(request, &names, &options, pipelines, before.clone())
            .await?;
        let published_secrets = names.published_secrets(request)?;
        let changes = Published {
            parts: &before,
            secrets: &published_secrets,
            config_hash: raw["status"]["publishedConfigHash"].as_str(),
        }
        .changes(&assembly, &secrets);
        let layout = DataLayout::of_parts(before.values());
        let published_names = present.publish(&options, &assembly, layout, may_move);
        let is_settled = published_names.running.is_none();
        let adopted_hash = observed.adopted_hash.clone();
        let is_compressed = object.workload().and_then(|it| it.compress_config_file);
        let publication = publication::of(
            K::KIND_OF_RUNNER,
            &assembly,
            is_compressed.unwrap_or_default(),
            secrets,
            adopted_hash,
            published_names,
            self.image.as_deref(),
        );
        let mut publication = publication.map_err(publication::too_large)?;
        publication.checks = checks.pods;
        let cluster = Cluster {
            cluster_scoped_names: self
                .plain_names
                .choose(&self.client, names.plain(), uid, request.children())
                .await?,
            ..self.cluster.clone()
        };
        let objects = |publication: &Publication| {
            let objects = object.owned_objects(publication, &cluster, &observed.aggregator());
            objects.map_err(|error| ReconcileError::Permanent {
                reason: "ObjectsInvalid",
                message: error.to_string(),
            })
        };
        let mut children = objects(&publication)?.children;
        let mut change = observed.change(&children, changes.clone());
        if let Some(image) = present.remaining_image().filter(|_| is_settled) {
            // The init container has nothing to do any more. It goes with the next change that replaces the Pods.
            publication.moved_data = Some(publication::moved(image, &DataMoves::default()));
            let with_container = objects(&publication)?.children;
            let kept = observed.change(&with_container, changes);
            if kept
                .as_ref()
                .is_none_or(|it| it.action != ChangeAction::Roll)
            {
                (children, change) = (with_container, kept);
            }
        }
        let (refreshed, is_reported) = futures::join!(
            self.refresh_pods(request, &names.namespace, &children),
            self.report(raw, &group, published, &assembly),
        );
        children.push(names.parts_secret(&assembly, &checks.records));
        let is_refreshed = !matches!(refreshed, Some((_, Refresh::Incomplete)));
        let versions = refreshed.filter(|_| is_refreshed);
        let outcome = Outcome {
            assembly: &assembly,
            rejected: checks.rejected.as_deref(),
            check_pods: publication.checks.len(),
            change: change.as_ref(),
            refreshed: versions.map(|(versions, _)| versions),
        };
        Ok(ReconcileOutput {
            status: outcome.status(raw),
            requeue_after: if is_reported && is_refreshed {
                let resync = ReconcileOutput::default().requeue_after;
                checks.next.map_or(resync, |next| next.min(resync))
            } else {
                WRITE_AGAIN
            },
            children,
            reads,
            reads_children: true,
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let uid = deleted.object["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default();
        kaasops::finish(&self.client, deleted.object).await?;
        self.passed().remove(uid);
        self.checks.release(uid);
        self.plain_names.release(uid);
        let name = selection::workload_name(deleted.object);
        let removed = pipeline_statuses::remove(&self.client, &self.pipelines, &name).await;
        if !matches!(removed, Ok(true)) {
            return Err(ReconcileError::Transient {
                reason: "PipelinesNotReported",
                message: "the statuses of the pipelines cannot be written".to_owned(),
            });
        }
        Ok(FinalizeOutcome::Done)
    }
}

/// Returns the permissions that a kind of workloads needs besides those for its own kind. The `PodMonitor`s are part of
/// them whether the cluster has that type or not.
#[must_use]
pub fn rbac_rules(kind: RunnerKind) -> Vec<Value> {
    let owned = owned::owned_types(kind, true);
    let owned = owned.iter().map(OwnedType::rbac_rule);
    let granted = owned::granted_rules(kind);
    let refresh = [pod_refresh::rbac_rule()];
    owned.chain(granted).chain(refresh).collect()
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

/// Configuration of a workload, and the values of the Secrets that it refers to.
pub(crate) struct Assembled {
    pub(crate) assembly: Assembly,
    /// Values by the name of the file.
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    /// The Secrets as they were read.
    pub(crate) reads: Vec<ReadObject>,
}
