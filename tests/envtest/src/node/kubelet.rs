//! kubelet.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::cluster::{Cluster, NODE};
use crate::error::Error;
use crate::node::cgroups::Cgroups;
use crate::node::config_file::write;
use crate::node::containerd;
use crate::node::namespaces::Namespaces;
use crate::process::Process;
use crate::tools::NodeTools;

pub(crate) fn start(
    tools: &NodeTools,
    namespaces: &Namespaces,
    cluster: &Cluster,
    cgroups: &Cgroups,
    directory: &Path,
) -> Result<Process, Error> {
    let resolver = directory.join("resolv.conf");
    // No name server: the clients of a Pod take the address of the API server from its environment.
    fs::write(&resolver, "").map_err(Error::file(&resolver))?;
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // Only this machine reaches the port.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups.path(),
        "failCgroupV1": false,
        "failSwapOn": false,
        "containerRuntimeEndpoint": format!("unix://{}", containerd::SOCKET),
        "podLogsDir": directory.join("pod-logs"),
        "resolvConf": resolver,
        // The disk and memory of this machine are not the node's alone.
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "1Mi"},
        "imageGCHighThresholdPercent": 100,
        "oomScoreAdj": 0,
    });
    let mut command = namespaces.command(&tools.kubelet);
    command
        .arg("--config")
        .arg(write(directory, "kubelet.yaml", &config)?)
        .arg("--kubeconfig")
        .arg(cluster.node_kubeconfig())
        .arg("--root-dir")
        .arg(directory.join("kubelet"))
        .arg(format!("--hostname-override={NODE}"))
        .arg(format!("--node-ip={}", namespaces.address()));
    Process::start("kubelet", &mut command, directory)
}
