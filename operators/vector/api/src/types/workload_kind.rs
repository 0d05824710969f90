//! The common interface of the kinds of workloads.

use lockstep_shared_validation::ValidatedResource;
use serde::Serialize;

use crate::types::aggregator_settings::Aggregator;
use crate::types::workload::Workload;
use crate::types::workload_role::WorkloadRole;

/// Kind of workloads: objects that run Vector.
pub trait WorkloadKind: ValidatedResource + kube::Resource + Serialize {
    /// Agents or aggregators.
    const ROLE: WorkloadRole;

    /// If true, each workload takes pipelines or data of other namespaces than that of its owned objects.
    const TAKES_OTHER_NAMESPACES: bool;

    /// Path of the settings of the Pods.
    const WORKLOAD: &'static str;

    /// Path of the image.
    const IMAGE: &'static [&'static str];

    /// Paths of the fields that turn interpolation on.
    const INTERPOLATION: &'static [&'static str];

    /// Path of the strategy by which the Pods are replaced.
    const UPDATE_STRATEGY: &'static [&'static str];

    /// Returns the settings of the Pods, if they are set.
    fn workload(&self) -> Option<&Workload>;

    /// Returns the settings of an aggregator.
    fn aggregator(&self) -> Option<&Aggregator> {
        None
    }

    /// Returns true if the sources of the Kubernetes API may read from its cache.
    fn uses_api_server_cache(&self) -> bool {
        false
    }

    /// Returns the namespace of the owned objects. It is empty for a namespaced workload in a file, for which `kubectl` sets it
    /// later, and none for a cluster-scoped one that does not name it.
    fn namespace_of_owned(&self) -> Option<&str> {
        Some(self.meta().namespace.as_deref().unwrap_or_default())
    }
}
