//! kube-proxy.

use std::path::Path;

use serde_json::json;

use crate::cluster::{Cluster, NODE};
use crate::error::Error;
use crate::node::config_file::write;
use crate::node::containerd::POD_CIDR;
use crate::node::namespaces::Namespaces;

use crate::process::Process;
use crate::tools::NodeTools;

pub(crate) fn start(
    tools: &NodeTools,
    namespaces: &Namespaces,
    cluster: &Cluster,
    directory: &Path,
) -> Result<Process, Error> {
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": cluster.kube_proxy_kubeconfig()},
        "mode": "iptables",
        "clusterCIDR": POD_CIDR,
        "hostnameOverride": NODE,
        // The limit is one of the machine, which a network namespace may not change.
        "conntrack": {"maxPerCore": 0, "min": 0},
        "oomScoreAdj": 0,
    });
    let mut command = namespaces.command(&tools.kube_proxy);
    command
        .arg("--config")
        .arg(write(directory, "kube-proxy.yaml", &config)?);
    Process::start("kube-proxy", &mut command, directory)
}
