//! Reconciler of the kinds that run pipelines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OwnedType, ReconcileError, ReconcileOutput, Reconciler,
    Reference, SyncRequest, Watch, read_status,
};
use lockstep_shared_validation::{ValidationRequest, ValidationResult};
use lockstep_vector_api::selection;
use lockstep_vector_api::{
    Catalogue, RunStatus, VectorContext, WorkloadKind, WorkloadRole, port_allocation,
};
use lockstep_vector_assembly::{Assembly, PipelineKey};
use serde_json::{Map, Value};

use crate::learning::CatalogueLearner;
use crate::owned::{self, Cluster, ClusterScopedNames};
use crate::run::assemble::assembler::Assembler;
use crate::run::check::catalogue_learning::CatalogueLearning;
use crate::run::check::checker::Checker;
use crate::run::check::pod_checks::PodChecks;
use crate::run::cluster_features::Installation;
use crate::run::collect::collector::Collector;
use crate::run::collect::{data_directory, stored_parts};
use crate::run::follow::follower::Follower;
use crate::run::follow::loading::Loading;
use crate::run::follow::pod_refresh;
use crate::run::follow::reload::{self, ObservedReloads};
use crate::run::kaasops;
use crate::run::names::Names;
use crate::run::publish::cluster_scoped_names::PlainNames;
use crate::run::publish::publisher::Publisher;
use crate::run::report::pipeline_statuses::PipelineReporter;
use crate::run::report::workload_status::Outcome;
use crate::run::report::{self, warnings};
use crate::run::workload_namespaces::WorkloadNamespaces;
use crate::validate_only::ValidateOnlyReconciler;

/// Finalizer of the workloads.
const FINALIZER: &str = "observability.kaasops.io/finalizer";

/// Time after which statuses of pipelines and annotations of Pods are written again that could not be written.
const WRITE_AGAIN: Duration = Duration::from_secs(30);

/// Reconciler that runs the pipelines of a kind of workloads.
pub struct WorkloadReconciler<K> {
    validation: ValidateOnlyReconciler<K>,
    client: Client,
    /// The kind itself, as it is installed.
    workloads: Option<ApiResource>,
    has_pod_monitors: bool,
    installation: Installation,
    collector: Collector,
    assembler: Assembler,
    checker: Checker,
    publisher: Publisher,
    follower: Follower,
    reporter: PipelineReporter,
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
        let pipelines: Vec<_> = installed.iter().filter(is_pipeline).cloned().collect();
        let mut kinds = installed.iter();
        let workloads =
            kinds.find(|resource| resource.group == K::GROUP && resource.kind == K::KIND);
        let cluster = Cluster {
            vector_version: Catalogue::shipped().number(),
            has_pod_monitors,
            cluster_scoped_names: ClusterScopedNames::default(),
            program_image: installation.image.clone(),
        };
        let secret_access = installation.secret_access.clone();
        let reloads = ObservedReloads::new(
            client.clone(),
            checks.controllers().clone(),
            installation.reload_timeout,
            installation.workload_pods.clone(),
        );
        Self {
            validation: ValidateOnlyReconciler::workloads(Arc::clone(&context)),
            workloads: workloads.cloned(),
            has_pod_monitors,
            collector: Collector {
                client: client.clone(),
                pipelines: pipelines.clone(),
                has_migration_image: installation.image.is_some(),
            },
            assembler: Assembler::new(client.clone(), Arc::clone(&context), secret_access),
            checker: Checker {
                client: client.clone(),
                cluster: cluster.clone(),
                checks,
                learning: CatalogueLearning { context, learner },
            },
            publisher: Publisher {
                client: client.clone(),
                cluster,
                plain_names: PlainNames::default(),
                image: installation.image.clone(),
            },
            follower: Follower {
                client: client.clone(),
                reloads,
            },
            reporter: PipelineReporter {
                client: client.clone(),
                pipelines,
            },
            installation,
            client,
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
        self.checker.release(uid);
        self.publisher.release(uid);
        if run_status(raw).published_config_hash.is_none() {
            // It runs nothing, and a pipeline does not wait for it. A Secret with parts is not ours.
            return Ok(true);
        }
        let stored = stored_parts::read(names.stored(request, stored_parts::KEY)?.as_deref());
        if stored.is_empty() {
            // After a start of the controller, each child leads to another reconciliation once it is listed.
            return Ok(true);
        }
        let group = self.collector.group(request)?;
        let kept = stored_parts::without_replaced(&stored, &group);
        let selected = group
            .iter()
            .filter(|pipeline| selection::selects(raw, pipeline));
        let problems = selected.filter_map(|pipeline| {
            let key = PipelineKey::from(&**pipeline);
            let published = kept.get(&key).map(|part| part.generation);
            (published != Some(pipeline.generation)).then(|| (key, error.to_string()))
        });
        let problems = problems.collect();
        let reporting = self
            .reporter
            .report(raw, &group, &kept, problems, Loading::Open);
        Ok(reporting.await)
    }
}

#[async_trait]
impl<K: WorkloadKind> Reconciler for WorkloadReconciler<K> {
    type Kind = K;

    /// Keeps the workload until its entries in the statuses of pipelines are removed.
    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    fn owns(&self) -> Vec<OwnedType> {
        owned::owned_types(K::ROLE, self.has_pod_monitors)
    }

    /// Nothing identifies a workload outside the cluster. Before its children are read, its namespace must be marked.
    async fn status_identity(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        let names = Names::new(request.parent(), request.raw_parent());
        // One that names no namespace cannot run anyway.
        if K::TAKES_OTHER_NAMESPACES && !names.namespace.is_empty() {
            self.require_marked_namespace(request, &names).await?;
        }
        Ok(Map::new())
    }

    fn watches(&self) -> Vec<Watch> {
        let pipelines = self.collector.pipelines.iter().map(|resource| {
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
        let raw = request.raw_parent();
        let status = run_status(raw);
        let options = self.assembler.options(request);
        let collected = self.collector.collect(request, options).await?;
        let (names, options) = (&collected.names, &collected.options);
        let (assembler, installation) = (&self.assembler, &self.installation);
        let checking = self
            .checker
            .check(request, &collected, assembler, installation);
        let (approved, checks) = checking.await?;
        let reports_loads = reload::is_observed(request, &options.catalogue);
        let publishing =
            self.publisher
                .publish(request, &status, &collected, approved, reports_loads);
        let desired = publishing.await?;
        self.require_mark_for(&desired.children, request, names)
            .await?;
        let following = self.follower.reload(request, &status, names, &desired);
        let mut reload = following.await;
        let (group, published) = (&collected.group, &collected.published.parts);
        let problems = problems_of(&desired.assembly);
        let (refreshed, is_reported) = futures::join!(
            self.follower.refresh(request, &status, names, &desired),
            self.reporter
                .report(raw, group, published, problems, reload.loading),
        );
        let is_written = is_reported && !refreshed.is_incomplete && !checks.is_incomplete;
        let mut conditions = warnings::conditions(request, self.workloads.as_ref(), &desired)?;
        conditions.extend(reload.condition.take());
        let directory = collected.observed.desired_data_directory(&desired.children);
        let outcome = Outcome {
            data_directory: directory.map(str::to_owned),
            desired: &desired,
            checks: &checks,
            reload: &reload,
            refreshed,
        };
        let status = outcome.status(&status, &report::now())?;
        let parts = names.parts_secret(&desired.assembly, &checks.records);
        let mut children = desired.children;
        children.push(parts);
        Ok(ReconcileOutput {
            status,
            requeue_after: requeue_after(is_written, [checks.next, reload.next]),
            children,
            reads: checks.reads,
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
        kaasops::finish(&self.client, deleted.object).await?;
        self.reporter.remove(deleted.object).await?;
        Ok(FinalizeOutcome::Done)
    }

    fn forget(&self, uid: &str) {
        self.assembler.forget(uid);
        self.checker.release(uid);
        self.checker.learning.release(uid);
        self.publisher.release(uid);
        self.follower.forget(uid);
    }
}

/// Returns what a workload runs, as its status says.
fn run_status(workload: &Value) -> RunStatus {
    read_status(&workload["status"])
}

/// Returns the pipelines that do not run as they are now, and why not.
fn problems_of(assembly: &Assembly) -> BTreeMap<PipelineKey, String> {
    let problems = assembly.problems.iter();
    problems
        .map(|problem| (problem.pipeline.clone(), problem.message.clone()))
        .collect()
}

/// Returns the time until the next reconciliation. `due` are the times until something is to be done.
fn requeue_after(is_written: bool, due: [Option<Duration>; 2]) -> Duration {
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
