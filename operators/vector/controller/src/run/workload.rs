//! Settings of a workload, as far as they decide what it runs.

use std::sync::Arc;

use lockstep_vector_api::{Aggregator, Catalogue, Workload, WorkloadKind};
use lockstep_vector_assembly::{ApiOptions, AssemblyOptions, InternalMetrics};

/// Returns true if the workload runs in a `StatefulSet`.
pub(crate) fn is_persistent<K: WorkloadKind>(object: &K) -> bool {
    object.aggregator().is_some_and(Aggregator::is_persistent)
}

/// Returns false if the workload forbids to move data.
pub(crate) fn wants_moves<K: WorkloadKind>(object: &K) -> bool {
    let is_wanted = object.workload().and_then(|workload| workload.migrate_data);
    is_wanted.unwrap_or(true)
}

/// Returns what of a workload decides its configuration.
pub(crate) fn assembly_options<K: WorkloadKind>(
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
        ..AssemblyOptions::new(K::ROLE)
    }
}
