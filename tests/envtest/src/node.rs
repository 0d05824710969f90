//! Real node: containerd, kubelet and kube-proxy, beside a control plane of their own, in namespaces of their own.

mod cgroups;
mod config_file;
mod containerd;
mod kube_proxy;
mod kubelet;
mod link;
mod namespaces;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1;
use kube::api::Api;
use tempfile::TempDir;

use crate::cluster::{Cluster, NODE};
use crate::error::Error;
use crate::process::Process;
use crate::tools::NodeTools;
use crate::wait::eventually_within;
use cgroups::Cgroups;
use containerd::Containerd;
pub(crate) use namespaces::Namespaces;

/// A first start on a busy machine includes the preparation of the containers' file systems.
const START: Duration = Duration::from_mins(3);

/// Cluster with one real node, on which Pods run. It needs root on Linux, and the packages that `apt/install` of this
/// crate installs.
///
/// # Guarantees
///
/// All processes, mounts, interfaces and iptables rules exist only in namespaces of this node, so that nodes do not
/// disturb the machine or each other. They end with the value, also if a test panics, and with the process, also if it
/// is killed.
pub struct Node {
    // In the order of shutdown: the end of the namespaces ends every process in them at once.
    namespaces: Namespaces,
    kube_proxy: Process,
    kubelet: Process,
    containerd: Containerd,
    cluster: Cluster,
    _cgroups: Cgroups,
    directory: TempDir,
}

impl Node {
    /// Returns an error that says why no node can run here, or nothing if one can.
    pub fn check() -> Result<(), Error> {
        containerd::check()?;
        let directory = directory()?;
        Namespaces::create(directory.path()).map(drop)
    }

    /// Starts the control plane and the node, and waits until the node is ready.
    pub async fn start() -> Result<Self, Error> {
        let tools = NodeTools::find_or_build()?;
        let directory = directory()?;
        let path = directory.path();
        let cgroups = Cgroups::create()?;
        let namespaces = Namespaces::create(path)?;
        let containerd = Containerd::start(&namespaces, path).await?;
        let cluster = Cluster::start_in(&namespaces).await?;
        let kubelet = kubelet::start(&tools, &namespaces, &cluster, &cgroups, path)?;
        let node = Self {
            kube_proxy: kube_proxy::start(&tools, &namespaces, &cluster, path)?,
            kubelet,
            namespaces,
            containerd,
            cluster,
            _cgroups: cgroups,
            directory,
        };
        node.containerd
            .import_sandbox_image(&tools.pause, node.directory.path())?;
        node.wait_until_ready().await?;
        Ok(node)
    }

    /// Returns the cluster that the node belongs to.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the address of the node, which this machine and all Pods reach.
    pub fn address(&self) -> Ipv4Addr {
        self.namespaces.address()
    }

    /// Returns a command that runs a program in the namespaces of the node, where Services and Pods are reached.
    pub fn command(&self, program: &Path) -> Command {
        self.namespaces.command(program)
    }

    /// Makes the images of an OCI archive available to Pods, as if they had been pulled.
    pub fn import_image(&self, archive: &Path) -> Result<(), Error> {
        self.containerd.import_image(archive)
    }

    /// Makes an image available under another name, such as `docker.io/library/lockstep:previous`.
    pub fn tag_image(&self, name: &str, other: &str) -> Result<(), Error> {
        self.containerd.tag_image(name, other)
    }

    /// Returns a directory that is deleted with the node.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the last output of the processes of the node, for an error message.
    pub fn tails(&self) -> String {
        let processes = [&self.kubelet, &self.kube_proxy, self.containerd.process()];
        processes.map(Process::tail).concat()
    }

    async fn wait_until_ready(&self) -> Result<(), Error> {
        let nodes: Api<v1::Node> = Api::all(self.cluster.client());
        let ready = eventually_within(START, "the node to become ready", async || {
            let status = nodes.get(NODE).await.ok()?.status?;
            let mut conditions = status.conditions.unwrap_or_default().into_iter();
            conditions.find(|condition| condition.type_ == "Ready" && condition.status == "True")
        });
        let ready = ready.await;
        ready
            .map(drop)
            .map_err(|error| error.with_hint(&self.tails()))
    }
}

fn directory() -> Result<TempDir, Error> {
    TempDir::with_prefix("node-").map_err(Error::file(Path::new("temporary directory")))
}
