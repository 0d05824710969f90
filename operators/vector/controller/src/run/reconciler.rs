//! Reconciler of the kinds that run pipelines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OwnedType, ReconcileError, ReconcileOutput, Reconciler,
    Reference, SyncRequest, Watch,
};
use lockstep_shared_validation::{ValidationRequest, ValidationResult};
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_api::{RunnerKind, VectorContext, port_allocation};
use lockstep_vector_assembly::{Assembly, PipelineKey};
use serde_json::{Map, Value, json};

use crate::owned::{self, Cluster, ClusterScopedNames};
use crate::run::assembler::{Assembled, Assembler};
use crate::run::cluster_scoped_names::PlainNames;
use crate::run::names::Names;
use crate::run::observed::Lookup;
use crate::run::pipeline_statuses::{self, Running};
use crate::run::pod_checks::{Checked, PodChecks};
use crate::run::workload::RunsPipelines;
use crate::run::workload_status::{self, LONGEST_PROBLEM};
use crate::run::{kaasops, publication, stored_parts};
use crate::validate_only::{ValidateOnlyReconciler, shortened};

/// Finalizer of the workloads.
const FINALIZER: &str = "observability.kaasops.io/finalizer";

/// Time after which statuses of pipelines are written again that could not be written.
const REPORT_AGAIN: Duration = Duration::from_secs(30);

/// Reconciler that runs the pipelines of a kind of workloads.
pub struct WorkloadReconciler<K> {
    validation: ValidateOnlyReconciler<K>,
    client: Client,
    /// Installed kinds of pipelines.
    pipelines: Vec<ApiResource>,
    cluster: Cluster,
    plain_names: PlainNames,
    assembler: Assembler,
    checks: PodChecks,
}

impl<K: RunsPipelines> WorkloadReconciler<K> {
    /// Returns a reconciler. `installed` are the kinds that exist in the cluster.
    #[must_use]
    pub fn new(
        client: Client,
        context: Arc<VectorContext>,
        installed: &[ApiResource],
        has_pod_monitors: bool,
        checks: PodChecks,
    ) -> Self {
        let is_pipeline =
            |resource: &&ApiResource| port_allocation::PIPELINES.contains(&&*resource.kind);
        let catalogues = context.catalogues();
        Self {
            validation: ValidateOnlyReconciler::workloads(catalogues.digest()),
            pipelines: installed.iter().filter(is_pipeline).cloned().collect(),
            cluster: Cluster {
                vector_version: lockstep_vector_api::Catalogue::shipped().number(),
                has_pod_monitors,
                cluster_scoped_names: ClusterScopedNames::default(),
            },
            plain_names: PlainNames::default(),
            assembler: Assembler::new(client.clone(), context),
            client,
            checks,
        }
    }

    /// Returns the pipelines that the workload may select.
    fn group(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Vec<Arc<SelectablePipeline>>, ReconcileError> {
        let key = [selection::group(request.raw_parent(), K::KIND_OF_RUNNER)];
        let mut group = Vec::new();
        for resource in &self.pipelines {
            let pipelines: Vec<Arc<SelectablePipeline>> =
                request.related().by_index(resource, &key)?;
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
            let group = |workload: &Value| {
                vec![Reference::IndexKey(selection::group(
                    workload,
                    K::KIND_OF_RUNNER,
                ))]
            };
            Watch::dynamic(resource.clone(), group).index_by(selection::index_selectable)
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
        let Checked {
            assembled:
                Assembled {
                    assembly,
                    secrets,
                    reads,
                },
            checks,
        } = self
            .checks
            .checked(
                &self.assembler,
                &self.cluster,
                request,
                &names,
                pipelines,
                before,
            )
            .await?;
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
        let adopted_hash = observed.adopted_hash.clone();
        let is_compressed = object.workload().and_then(|it| it.compress_config_file);
        let publication = publication::of(
            K::KIND_OF_RUNNER,
            &assembly,
            is_compressed.unwrap_or_default(),
            secrets,
            adopted_hash,
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
        let objects = object.owned_objects(&publication, &cluster, &observed.aggregator());
        let objects = objects.map_err(|error| ReconcileError::Permanent {
            reason: "ObjectsInvalid",
            message: error.to_string(),
        })?;
        let mut children = objects.children;
        children.push(names.parts_secret(&assembly, &checks.records));
        let is_reported = self.report(raw, &group, published, &assembly).await;
        Ok(ReconcileOutput {
            status: workload_status::fields(
                raw,
                &assembly,
                checks.rejected.as_deref(),
                publication.checks.len(),
            ),
            requeue_after: if is_reported {
                let resync = ReconcileOutput::default().requeue_after;
                checks.next.map_or(resync, |next| next.min(resync))
            } else {
                REPORT_AGAIN
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
        self.assembler.forget(uid);
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
    owned.chain(owned::granted_rules(kind)).collect()
}
