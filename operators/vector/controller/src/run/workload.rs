//! The common interface of the kinds that run pipelines.

use std::sync::Arc;

use lockstep_shared_validation::ValidatedResource;
use lockstep_vector_api::{
    Catalogue, ClusterVectorAggregator, RunnerKind, Vector, VectorAggregator, Workload,
};
use lockstep_vector_assembly::{ApiOptions, AssemblyOptions, InternalMetrics};

use crate::owned::{
    self, Cluster, ObservedAggregator, OwnedObjects, OwnedObjectsError, Publication,
};

/// Kind that runs pipelines.
pub trait RunsPipelines: ValidatedResource {
    /// Agents or aggregators.
    const KIND_OF_RUNNER: RunnerKind;

    /// If true, each workload takes pipelines or data of other namespaces than that of its owned objects.
    const TAKES_OTHER_NAMESPACES: bool;

    /// Returns the settings of the Pods.
    fn workload(&self) -> Option<&Workload>;

    /// Returns true if the sources of the Kubernetes API may read from its cache.
    fn uses_api_server_cache(&self) -> bool {
        false
    }

    /// Returns the namespace of the owned objects of a cluster-scoped workload.
    fn resource_namespace(&self) -> Option<&str> {
        None
    }

    /// Returns true if the workload runs in a `StatefulSet`.
    fn is_persistent(&self) -> bool {
        false
    }

    /// Returns the owned objects.
    ///
    /// # Errors
    ///
    /// There are no valid ones; the existing ones are kept.
    fn owned_objects(
        &self,
        publication: &Publication,
        cluster: &Cluster,
        observed: &ObservedAggregator<'_>,
    ) -> Result<OwnedObjects, OwnedObjectsError>;
}

impl RunsPipelines for Vector {
    const KIND_OF_RUNNER: RunnerKind = RunnerKind::Agent;
    const TAKES_OTHER_NAMESPACES: bool = true;

    fn workload(&self) -> Option<&Workload> {
        self.spec.agent.as_ref()
    }

    fn uses_api_server_cache(&self) -> bool {
        self.spec.use_api_server_cache.unwrap_or_default()
    }

    fn owned_objects(
        &self,
        publication: &Publication,
        cluster: &Cluster,
        _observed: &ObservedAggregator<'_>,
    ) -> Result<OwnedObjects, OwnedObjectsError> {
        owned::of_vector(self, publication, cluster)
    }
}

impl RunsPipelines for VectorAggregator {
    const KIND_OF_RUNNER: RunnerKind = RunnerKind::Aggregator;
    // Only one with a `ClusterRole` does.
    const TAKES_OTHER_NAMESPACES: bool = false;

    fn workload(&self) -> Option<&Workload> {
        Some(&self.spec.aggregator.workload)
    }

    fn is_persistent(&self) -> bool {
        owned::is_persistent(&self.spec.aggregator)
    }

    fn owned_objects(
        &self,
        publication: &Publication,
        cluster: &Cluster,
        observed: &ObservedAggregator<'_>,
    ) -> Result<OwnedObjects, OwnedObjectsError> {
        owned::of_aggregator(self, publication, cluster, observed)
    }
}

impl RunsPipelines for ClusterVectorAggregator {
    const KIND_OF_RUNNER: RunnerKind = RunnerKind::Aggregator;
    const TAKES_OTHER_NAMESPACES: bool = true;

    fn workload(&self) -> Option<&Workload> {
        Some(&self.spec.aggregator.workload)
    }

    fn is_persistent(&self) -> bool {
        owned::is_persistent(&self.spec.aggregator)
    }

    fn resource_namespace(&self) -> Option<&str> {
        self.spec.resource_namespace.as_deref()
    }

    fn owned_objects(
        &self,
        publication: &Publication,
        cluster: &Cluster,
        observed: &ObservedAggregator<'_>,
    ) -> Result<OwnedObjects, OwnedObjectsError> {
        owned::of_cluster_aggregator(self, publication, cluster, observed)
    }
}

/// Returns what of a workload decides its configuration.
pub(crate) fn assembly_options<K: RunsPipelines>(
    object: &K,
    catalogue: Arc<Catalogue>,
) -> AssemblyOptions {
    let default = Workload::default();
    let workload = object.workload().unwrap_or(&default);
    let api = workload.api.as_ref();
    let has_api = api.and_then(|api| api.enabled).unwrap_or_default();
    let has_metrics = workload.internal_metrics.unwrap_or_default();
    AssemblyOptions {
        component_names: workload.component_names.unwrap_or_default(),
        merge_sources: workload.merge_sources.unwrap_or_default(),
        catalogue,
        use_api_server_cache: object.uses_api_server_cache(),
        expire_metrics_secs: workload.expire_metrics_secs,
        api: has_api.then(ApiOptions::default),
        internal_metrics: has_metrics.then_some(InternalMetrics::ReplacedByAdministrators),
        ..AssemblyOptions::new(K::KIND_OF_RUNNER)
    }
}
