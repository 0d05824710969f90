//! Choices of what a cluster consists of, and from where its programs come.

use std::path::PathBuf;

/// Components of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Components {
    /// etcd and kube-apiserver: enough for custom resources whose operators create no objects. Nothing collects
    /// garbage, and a deleted namespace keeps its content.
    ApiServer,
    /// Also kube-controller-manager, kube-scheduler and kwok, which simulates nodes.
    #[default]
    All,
}

/// Download of etcd, kube-apiserver and kubectl by setup-envtest, instead of building them.
#[derive(Clone, Debug, Default)]
pub struct Download {
    /// URL of the index of the archives. Default: that of setup-envtest.
    pub index: Option<String>,
}

/// Settings of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// Additional arguments of the API server.
    pub apiserver_args: Vec<String>,
    /// Components of the cluster.
    pub components: Components,
    /// If set, programs that are missing are downloaded.
    pub download: Option<Download>,
}

/// Paths of the programs that every cluster needs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Path of etcd.
    pub etcd: PathBuf,
    /// Path of kube-apiserver.
    pub apiserver: PathBuf,
    /// Path of kubectl.
    pub kubectl: PathBuf,
}
