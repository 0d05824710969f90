//! Reconciler of the kinds that run pipelines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OperatorCondition, OwnedType, ReconcileError,
    ReconcileOutput, Reconciler, Reference, SyncRequest, Watch,
};
use lockstep_shared_validation::{ValidationRequest, ValidationResult};
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_api::{VectorContext, WorkloadRole, is_kaasops, port_allocation};
use lockstep_vector_assembly::{Assembly, AssemblyOptions, DataLayout, PipelineKey, PipelinePart};
use serde_json::{Map, Value, json};

use crate::learning::CatalogueLearner;
use crate::owned::{self, Cluster, ClusterScopedNames, Publication};
use crate::run::assemble::assembler::{Assembled, Assembler, Selection};
use crate::run::assemble::start::Published;
use crate::run::check::catalogue_learning::{CatalogueLearning, Learning};
use crate::run::check::pod_checks::{CheckContext, Checked, PodChecks};
use crate::run::check::warm_validator::WarmValidator;
use crate::run::cluster_features::Installation;
use crate::run::collect::data_directory::{self, DirectoryUser};
use crate::run::collect::running_objects::{Lookup, Observed};
use crate::run::collect::stored_parts;
use crate::run::follow::pod_refresh::{self, Refresh};
use crate::run::follow::reload::{self, ObservedReloads, ReloadReport};
use crate::run::migrate::PresentNames;
use crate::run::names::Names;
use crate::run::publish::builder::{PublicationBuilder, wants_moves};
use crate::run::publish::changes;
use crate::run::publish::cluster_scoped_names::PlainNames;
use crate::run::publish::contents;
use crate::run::publish::foreign_services::ForeignServices;
use crate::run::publish::objects::Objects;
use crate::run::publish::plan::Plan;
use crate::run::report::pipeline_statuses::{self, Loading, Running};
use crate::run::report::warnings;
use crate::run::report::workload_status::{LONGEST_PROBLEM, Outcome};
use crate::run::workload_namespaces::WorkloadNamespaces;
use crate::run::{kaasops, workload};
use crate::validate_only::{ValidateOnlyReconciler, shortened};
use lockstep_vector_api::WorkloadKind;

/// Finalizer of the workloads.
const FINALIZER: &str = "observability.kaasops.io/finalizer";

/// Time after which statuses of pipelines and annotations of Pods are written again that could not be written.
const WRITE_AGAIN: Duration = Duration::from_secs(30);

/// Reconciler that runs the pipelines of a kind of workloads.
pub struct WorkloadReconciler<K> {
    validation: ValidateOnlyReconciler<K>,
    client: Client,
    /// Installed kinds of pipelines.
    pipelines: Vec<ApiResource>,
    /// The kind itself, as it is installed.
    workloads: Option<ApiResource>,
    cluster: Cluster,
    plain_names: PlainNames,
    installation: Installation,
    assembler: Assembler,
    checks: PodChecks,
    learning: CatalogueLearning,
    reloads: ObservedReloads,
}

impl<K: WorkloadKind> WorkloadReconciler<K> {
    /// Returns a reconciler. `installed` are the kinds that exist in the cluster. Without a `learner`, no catalogue is learned.
    #[must_use]
    pub fn new(
        client: Client,
        context: Arc<VectorContext>,
        installed: &[ApiResource],
        has_pod_monitors: bool,
        installation: Installation,
        checks: PodChecks,
        learner: Option<Arc<CatalogueLearner>>,
    ) -> Self {
        let is_pipeline =
            |resource: &&ApiResource| port_allocation::PIPELINES.contains(&&*resource.kind);
        Self {
            validation: ValidateOnlyReconciler::workloads(Arc::clone(&context)),
            assembler: Assembler::new(
                client.clone(),
                Arc::clone(&context),
                installation.secret_access.clone(),
            ),
            learning: CatalogueLearning { context, learner },
            reloads: ObservedReloads::new(
                client.clone(),
                checks.controllers().clone(),
                installation.reload_timeout,
                installation.workload_pods.clone(),
            ),
            client,
            pipelines: installed.iter().filter(is_pipeline).cloned().collect(),
            workloads: installed
                .iter()
                .find(|resource| resource.group == K::GROUP && resource.kind == K::KIND)
                .cloned(),
            cluster: Cluster {
                vector_version: lockstep_vector_api::Catalogue::shipped().number(),
                has_pod_monitors,
                cluster_scoped_names: ClusterScopedNames::default(),
            },
            plain_names: PlainNames::default(),
            installation,
            checks,
        }
    }

    /// Returns the pipelines that concern the workload.
    fn group(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Vec<Arc<SelectablePipeline>>, ReconcileError> {
        let keys = selection::keys(request.raw_parent(), K::ROLE);
        let mut group = Vec::new();
        for resource in &self.pipelines {
            let pipelines: Vec<Arc<SelectablePipeline>> =
                request.related().by_index(resource, &keys)?;
            group.extend(pipelines);
        }
        Ok(group)
    }

    /// Reports to the pipelines what is published of them, as `before` says: what is about to be published is reported after that,
    /// by the reconciliation that follows the write. `problems` are the pipelines that do not run as they are now, and why not.
    /// Returns false if a report must be written again.
    async fn report(
        &self,
        workload: &Value,
        group: &[Arc<SelectablePipeline>],
        before: &BTreeMap<PipelineKey, PipelinePart>,
        problems: impl Iterator<Item = (PipelineKey, String)>,
        loading: Loading,
    ) -> bool {
        let generations = before
            .iter()
            .map(|(key, part)| (key.clone(), part.generation));
        let name = selection::workload_name(workload);
        let running = Running {
            workload: &name,
            generations: generations.collect(),
            problems: problems
                .map(|(key, message)| (key, shortened(message, LONGEST_PROBLEM)))
                .collect(),
            loading,
        };
        let now = json!(Time(k8s_openapi::jiff::Timestamp::now()));
        let selects = |pipeline: &SelectablePipeline| selection::selects(workload, pipeline);
        let reports = running.reports(group, selects, now.as_str().unwrap_or_default());
        pipeline_statuses::write(&self.client, &self.pipelines, &name, reports).await
    }

    /// Reads the objects that run Vector now.
    async fn observe(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<Observed, ReconcileError> {
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let lookup = Lookup {
            client: &self.client,
            children: request.children(),
            namespace: &names.namespace,
            name: &names.name,
            uid: uid.unwrap_or_default(),
        };
        let is_persistent = workload::is_persistent(request.parent());
        lookup.observe(K::ROLE, is_persistent).await
    }

    /// Returns the facts about the cluster, with the names of cluster-scoped objects.
    async fn cluster(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<Cluster, ReconcileError> {
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default();
        let chosen = self
            .plain_names
            .choose(&self.client, names.plain(), uid, request.children());
        Ok(Cluster {
            cluster_scoped_names: chosen.await?,
            ..self.cluster.clone()
        })
    }

    /// Reads what the Pods have loaded, refreshes them, and reports to the pipelines. Returns false if a Pod or a pipeline has to get
    /// it again.
    async fn follow(
        &self,
        request: &SyncRequest<'_, K>,
        collected: &Collected,
        publication: &Publication,
        assembly: &Assembly,
        children: &[Value],
    ) -> (PodsOfWorkload, bool) {
        let names = &collected.names;
        let reload = self.reloads.observe(request, names, publication, assembly);
        let reload = reload.await;
        let max_pods = pod_refresh::max_pods(&assembly.config);
        let problems = problems_of(assembly);
        let (refreshed, is_reported) = futures::join!(
            self.refresh_pods(request, &names.namespace, children, max_pods),
            self.report(
                request.raw_parent(),
                &collected.group,
                &collected.published.parts,
                problems,
                reload.loading
            ),
        );
        let is_refreshed = !matches!(refreshed, Some((_, Refresh::Incomplete)));
        let pods = PodsOfWorkload {
            reload,
            refreshed_versions: refreshed
                .filter(|_| is_refreshed)
                .map(|(versions, _)| versions),
        };
        (pods, is_reported && is_refreshed)
    }

    /// Refreshes the Pods if Secrets among the children have been published since the last time. Returns the versions of
    /// these Secrets, and the result.
    async fn refresh_pods(
        &self,
        request: &SyncRequest<'_, K>,
        namespace: &str,
        children: &[Value],
        max_pods: usize,
    ) -> Option<(String, Refresh)> {
        let raw = request.raw_parent();
        let observed: Vec<_> = request.children().iter().collect();
        let refreshed = raw["status"]["refreshedSecretVersions"].as_str();
        let name = raw["metadata"]["name"].as_str().unwrap_or_default();
        let labels = owned::labels_of_pods(K::ROLE, name);
        // Pods that check configurations have Secrets of their own.
        let mounted = children.iter().filter(|child| {
            let of_child = &child["metadata"]["labels"];
            labels
                .iter()
                .all(|(label, value)| of_child[label] == **value)
        });
        let versions = pod_refresh::new_versions(mounted, &observed, refreshed)?;
        let result =
            pod_refresh::refresh(&self.client, namespace, &labels, &versions, max_pods).await;
        Some((versions, result))
    }

    /// Returns the validator that the workload needs now, and the state of the catalogue that is learned by it.
    async fn validator(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<(WarmValidator, Learning), ReconcileError> {
        let mut learning = self.learning.begin(request).await;
        let (cluster, installation) = (&self.cluster, &self.installation);
        let is_for_schema = learning.needs_validator;
        let validator = WarmValidator::of(request, names, cluster, installation, is_for_schema)?;
        let ask = self
            .learning
            .ask(&mut learning, &self.client, &names.namespace, &validator);
        ask.await;
        Ok((validator, learning))
    }

    /// Collects the pipelines that a workload selects, and what it runs now.
    async fn collect(&self, request: &SyncRequest<'_, K>) -> Result<Collected, ReconcileError> {
        let object = request.parent();
        let names = Names::of(object, request.raw_parent());
        let stored = names.stored(request, stored_parts::KEY)?;
        let before = stored_parts::read(stored.as_deref());
        let group = self.group(request)?;
        let observed = self.observe(request, &names).await?;
        let may_move = self.may_move_data(object);
        let present = observed.names(&names.name);
        let published = Arc::new(Published {
            parts: stored_parts::without_replaced(&before, &group),
            values: names.published_secrets(request)?,
            is_unknown: present.exists() && stored.is_none(),
        });
        let options = self.assembler.options(request);
        let desired_layout = options.layout();
        let facts = data_directory::Facts {
            workload: object.workload(),
            names: &names,
            raw: request.raw_parent(),
            live: observed.data_directory(),
            exists: present.exists(),
            is_kaasops: is_kaasops(request.policy().settings("vector")),
        };
        Ok(Collected {
            data_directory: facts.directory(),
            options: options.in_layout(present.layout(desired_layout, may_move)),
            names,
            before,
            group,
            published,
            observed,
            may_move,
            present,
            desired_layout,
        })
    }

    /// Checks the configuration. Pipelines whose Services have another owner run as they last ran; those Services are
    /// returned, too.
    async fn checked(
        &self,
        request: &SyncRequest<'_, K>,
        collected: &Collected,
        validator: &WarmValidator,
    ) -> Result<(Checked, ForeignServices), ReconcileError> {
        let names = &collected.names;
        let mut selection = Selection {
            pipelines: selected(request.raw_parent(), &collected.group),
            published: Arc::clone(&collected.published),
            held: BTreeMap::new(),
        };
        let mut foreign = ForeignServices::default();
        loop {
            let context = CheckContext {
                assembler: &self.assembler,
                cluster: &self.cluster,
                validator,
            };
            let checking = self.checks.checked(
                context,
                request,
                names,
                &collected.options,
                selection.clone(),
            );
            let checked = checking.await?;
            let services = &checked.assembled.assembly.services;
            if K::ROLE == WorkloadRole::Agent {
                return Ok((checked, foreign));
            }
            let uid = request.raw_parent()["metadata"]["uid"].as_str();
            let (client, uid) = (&self.client, uid.unwrap_or_default());
            let finding = ForeignServices::find(client, request.children(), names, uid, services);
            foreign.extend(finding.await?);
            // Those that are left out make room for others, whose Services are read as well.
            let held = selection.held.len();
            selection.held.extend(foreign.waiting(names, services));
            if selection.held.len() == held {
                return Ok((checked, foreign));
            }
        }
    }

    /// Returns an error if the namespace of the owned objects is not marked. What runs there is left as it is.
    async fn require_marked_namespace(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<(), ReconcileError> {
        let namespaces = &self.installation.workload_namespaces;
        let Err(error) = namespaces.require(&names.namespace, request.related()) else {
            return Ok(());
        };
        if error.passes_by_itself() || self.suspend(request, names, &error).await? {
            return Err(error);
        }
        Err(error.requeue_after(WRITE_AGAIN))
    }

    /// Returns an error if the children of a workload read more than one namespace, and theirs is not marked.
    async fn require_mark_for(
        &self,
        children: &[Value],
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<(), ReconcileError> {
        if children.iter().any(|child| child["kind"] == "ClusterRole") {
            self.require_marked_namespace(request, names).await?;
        }
        Ok(())
    }

    /// Ends the checks of a workload whose namespace is not marked, and reports to its pipelines that their changes are not
    /// published. Returns false if a report must be written again.
    async fn suspend(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
        error: &ReconcileError,
    ) -> Result<bool, ReconcileError> {
        let raw = request.raw_parent();
        let uid = raw["metadata"]["uid"].as_str().unwrap_or_default();
        self.checks.release(uid);
        self.plain_names.release(uid);
        if raw["status"]["publishedConfigHash"].is_null() {
            // It runs nothing, and a pipeline does not wait for it. A Secret with parts is not ours.
            return Ok(true);
        }
        let before = stored_parts::read(names.stored(request, stored_parts::KEY)?.as_deref());
        if before.is_empty() {
            // After a start of the controller, each child leads to another reconciliation once it is listed.
            return Ok(true);
        }
        let group = self.group(request)?;
        let kept = stored_parts::without_replaced(&before, &group);
        let selected = group.iter().filter(|it| selection::selects(raw, it));
        let problems = selected.filter_map(|pipeline| {
            let key = PipelineKey::from(&**pipeline);
            let published = kept.get(&key).map(|part| part.generation);
            (published != Some(pipeline.generation)).then(|| (key, error.to_string()))
        });
        let loading = Loading::Open;
        Ok(self.report(raw, &group, &kept, problems, loading).await)
    }

    /// Returns the conditions about what an administrator should change.
    fn warnings(
        &self,
        request: &SyncRequest<'_, K>,
        assembly: &Assembly,
        children: &[Value],
    ) -> Result<Vec<OperatorCondition>, ReconcileError> {
        let raw = request.raw_parent();
        let memory = warnings::memory(raw, assembly, children);
        let directory = match data_directory::key(raw).zip(self.workloads.as_ref()) {
            None => None,
            Some((key, workloads)) => {
                let users: Vec<Arc<DirectoryUser>> =
                    request.related().by_index(workloads, &[key])?;
                let users = users.iter().map(|user| DirectoryUser::clone(user));
                data_directory::condition(raw, users)
            }
        };
        Ok(memory.into_iter().chain(directory).collect())
    }

    /// Returns true if an init container can move the data of the workload: the old Pod of a `Deployment` may still use it
    /// when the new one starts.
    fn may_move_data(&self, object: &K) -> bool {
        let is_replaced_first = K::ROLE == WorkloadRole::Agent || workload::is_persistent(object);
        self.installation.image.is_some() && wants_moves(object) && is_replaced_first
    }
}

/// Workload, the pipelines that concern it, and what it runs now.
struct Collected {
    names: Names,
    /// Parts that are stored.
    before: BTreeMap<PipelineKey, PipelinePart>,
    group: Vec<Arc<SelectablePipeline>>,
    /// Parts that are stored of pipelines that still exist, and the values of their Secrets.
    published: Arc<Published>,
    observed: Observed,
    /// If true, an init container can move the data.
    may_move: bool,
    data_directory: String,
    present: PresentNames,
    /// Options with the names that the Pods have now.
    options: AssemblyOptions,
    desired_layout: DataLayout,
}

/// Reload and refresh of the Pods of a workload.
struct PodsOfWorkload {
    reload: ReloadReport,
    /// Versions of the Secrets with which they were refreshed, if there are new ones.
    refreshed_versions: Option<String>,
}

#[async_trait]
impl<K: WorkloadKind> Reconciler for WorkloadReconciler<K> {
    type Kind = K;

    /// Keeps the workload until its entries in the statuses of pipelines are removed.
    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    fn owns(&self) -> Vec<OwnedType> {
        owned::owned_types(K::ROLE, self.cluster.has_pod_monitors)
    }

    /// Nothing identifies a workload outside the cluster. Before its children are read, its namespace must be marked.
    async fn status_identity(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        let names = Names::of(request.parent(), request.raw_parent());
        // One that names no namespace cannot run anyway.
        if K::TAKES_OTHER_NAMESPACES && !names.namespace.is_empty() {
            self.require_marked_namespace(request, &names).await?;
        }
        Ok(Map::new())
    }

    fn watches(&self) -> Vec<Watch> {
        let pipelines = self.pipelines.iter().map(|resource| {
            let keys = |workload: &Value| {
                let keys = selection::keys(workload, K::ROLE);
                keys.into_iter().map(Reference::IndexKey).collect()
            };
            Watch::dynamic(resource.clone(), keys).index_by(selection::index_selectable)
        });
        let workloads = self.workloads.iter().cloned().map(data_directory::watch);
        pipelines
            .chain(workloads)
            .chain(self.installation.workload_namespaces.watch())
            .collect()
    }

    fn rbac_rules(&self) -> Vec<Value> {
        rbac_rules(K::ROLE)
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
        let collected = self.collect(request).await?;
        let (validator, learning) = self.validator(request, &collected.names).await?;
        let (checked, foreign) = self.checked(request, &collected, &validator).await?;
        let Checked {
            assembled,
            planned,
            checks,
        } = checked;
        let Collected {
            names,
            before,
            published,
            observed,
            may_move,
            data_directory,
            present,
            options,
            desired_layout,
            ..
        } = &collected;
        let Assembled {
            assembly,
            secrets,
            reads,
            is_incomplete,
        } = assembled;
        let changes = published_changes(raw, (before, &published.values), &assembly, &secrets);
        let builder = PublicationBuilder {
            object,
            observed,
            may_move: *may_move,
            image: self.installation.image.as_deref(),
            object_name: &names.name,
            data_directory,
            reports_loads: reload::is_observed(request, &options.catalogue),
        };
        let desired_options = options.in_layout(*desired_layout);
        let plan = Plan::of(options, desired_options, &assembly, &secrets, planned);
        let publication = builder.publish(present, options, &assembly, secrets, before);
        let (mut publication, image) = publication.map_err(contents::too_large)?;
        publication
            .services
            .retain(|service| !foreign.has(names, service));
        publication.checks = checks.pods;
        publication.validator = validator.desired;
        let objects = Objects {
            object,
            cluster: self.cluster(request, names).await?,
            observed,
            changes,
        };
        let (mut children, change) = objects.desired_with(&mut publication, image)?;
        self.require_mark_for(&children, request, names).await?;
        let planned = plan.and_then(|plan| {
            let present = plan.names(present);
            let planned = plan.publish(&builder, &present)?;
            objects.planned_change(planned, &children, plan.changes)
        });
        let (pods, is_complete) = self
            .follow(request, &collected, &publication, &assembly, &children)
            .await;
        children.push(names.parts_secret(&assembly, &checks.records));
        let reload = pods.reload;
        let mut conditions = self.warnings(request, &assembly, &children)?;
        conditions.extend(reload.condition);
        let outcome = Outcome {
            data_directory: observed.desired_data_directory(&children),
            assembly: &assembly,
            rejected: checks.rejected.as_deref(),
            check_pods: publication.checks.len(),
            validator: validator.state.as_deref(),
            catalogue: learning.state.as_deref(),
            change: change.as_ref(),
            planned: planned.as_ref(),
            loaded: reload.status,
            refreshed: pods.refreshed_versions,
        };
        let next = [
            checks.next,
            validator.renewal_in,
            learning.next,
            reload.next,
        ];
        Ok(ReconcileOutput {
            status: outcome.status(raw),
            requeue_after: requeue_after(is_complete && !is_incomplete, next),
            children,
            reads,
            reads_children: true,
            conditions,
            events: reload.event.into_iter().collect(),
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
        self.assembler.forget(uid);
        self.checks.release(uid);
        self.plain_names.release(uid);
        self.learning.release(uid);
        self.reloads.release::<K>(deleted.object);
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

/// Returns the pipelines that do not run as they are now, and why not.
fn problems_of(assembly: &Assembly) -> impl Iterator<Item = (PipelineKey, String)> {
    let problems = assembly.problems.iter();
    problems.map(|problem| (problem.pipeline.clone(), problem.message.clone()))
}

/// Returns the pipelines whose configuration differs from the published parts and values of Secrets.
fn published_changes(
    workload: &Value,
    (parts, published): (
        &BTreeMap<PipelineKey, PipelinePart>,
        &BTreeMap<String, Vec<u8>>,
    ),
    assembly: &Assembly,
    secrets: &BTreeMap<String, Vec<u8>>,
) -> Vec<String> {
    let published = changes::Published {
        parts,
        secrets: published,
        config_hash: workload["status"]["publishedConfigHash"].as_str(),
    };
    published.changes(assembly, secrets)
}

/// Returns the time until the next reconciliation. `due` are the times until something is to be done.
fn requeue_after(is_written: bool, due: [Option<Duration>; 4]) -> Duration {
    if is_written {
        let resync = ReconcileOutput::default().requeue_after;
        due.into_iter().flatten().fold(resync, Duration::min)
    } else {
        WRITE_AGAIN
    }
}

/// Returns the permissions that a kind of workloads needs besides those for its own kind. The `PodMonitor`s are part of
/// them whether the cluster has that type or not.
#[must_use]
pub fn rbac_rules(kind: WorkloadRole) -> Vec<Value> {
    let owned = owned::owned_types(kind, true);
    let owned = owned.iter().map(OwnedType::rbac_rule);
    let granted = owned::granted_rules(kind);
    let others = [pod_refresh::rbac_rule(), WorkloadNamespaces::rbac_rule()];
    let of_reloads = reload::rbac_rules();
    owned
        .chain(granted)
        .chain(others)
        .chain(of_reloads)
        .collect()
}

/// Returns the pipelines of a group that a workload selects.
fn selected(workload: &Value, group: &[Arc<SelectablePipeline>]) -> Vec<Arc<SelectablePipeline>> {
    let selects = |pipeline: &&Arc<SelectablePipeline>| selection::selects(workload, pipeline);
    group.iter().filter(selects).cloned().collect()
}
