//! Properties of the cluster that the owned objects depend on.

use lockstep_vector_api::VectorVersion;

/// Properties of the cluster that the owned objects depend on.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Version of Vector for which pipelines are validated: that of a workload that names no image.
    pub vector_version: VectorVersion,
    /// If true, the cluster has the API type `PodMonitor` of the Prometheus Operator.
    pub has_pod_monitors: bool,
    /// Names of cluster-scoped objects.
    pub cluster_scoped_names: ClusterScopedNames,
    /// Image with this program, if it is known.
    pub program_image: Option<String>,
}

/// Names of the `ClusterRole` and of the `ClusterRoleBinding` of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterScopedNames {
    /// `NAME-agent`, as in the operator of kaasops. Two workloads with one name in two namespaces get the same names,
    /// so that only one of them can run.
    #[default]
    Plain,
    /// `NAMESPACE-NAME-agent`, for a workload whose plain names another one has.
    WithNamespace,
}
