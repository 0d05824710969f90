//! etcd and kube-apiserver, and usually kube-controller-manager, kube-scheduler and kwok, as one cluster.

mod control_plane;
mod endpoints;
mod serving_certificate;
mod site;
mod snapshot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use tempfile::TempDir;

use crate::cache::on_path;
use crate::cluster::control_plane::ControlPlane;
use crate::cluster::endpoints::{Endpoints, Workloads};
#[cfg(feature = "node")]
pub(crate) use crate::cluster::site::NODE;
use crate::cluster::site::Site;
use crate::components::{ClusterOptions, Components, Programs};
use crate::error::Error;
use crate::kubeconfig;
#[cfg(feature = "node")]
use crate::node::Namespaces;
use crate::pool::{Pool, PoolUser};
use crate::process::{free_port, run};
use crate::tools::Tools;

/// Control planes whose tests have succeeded.
static POOL: Pool<Box<ControlPlane>> = Pool::new();

/// Real cluster on loopback addresses. It is stopped when the value is dropped.
///
/// Its etcd and kube-apiserver may have served an earlier test of this process. They have returned to the content that they
/// had before that test. The other components are started for each cluster: they remember what they have seen.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube::Api;
/// use lockstep_envtest::Cluster;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::start().await?;
/// let namespaces: Api<Namespace> = Api::all(cluster.client());
/// namespaces.get("default").await?;
/// print!("{}", cluster.run_kubectl(&["get", "namespaces"])?);
/// # Ok(())
/// # }
/// ```
pub struct Cluster {
    // In the order of shutdown.
    workloads: Option<Workloads>,
    /// Unset while the value is dropped.
    control_plane: Option<Box<ControlPlane>>,
    client: Client,
    /// True if another test may use the control plane afterwards.
    is_reusable: bool,
    directory: TempDir,
    pool: PoolUser<Box<ControlPlane>>,
}

impl Cluster {
    /// Builds or downloads the programs of a cluster, if they are missing, and starts none of them.
    pub async fn prepare(options: &ClusterOptions) -> Result<Programs, Error> {
        let tools = find_tools(options).await?;
        Ok(Programs {
            etcd: tools.etcd,
            apiserver: tools.apiserver,
            kubectl: tools.kubectl,
        })
    }

    /// Starts a cluster with RBAC enabled, without nodes and objects.
    ///
    /// # Expected flow
    ///
    /// The first call on a machine builds the programs, which takes minutes. Later calls take seconds.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(&[]).await
    }

    /// Starts a cluster with additional arguments for the API server.
    pub async fn start_with(apiserver_args: &[&str]) -> Result<Self, Error> {
        Self::start_from(&ClusterOptions {
            apiserver_args: apiserver_args.iter().map(ToString::to_string).collect(),
            ..ClusterOptions::default()
        })
        .await
    }

    /// Starts a cluster of etcd and kube-apiserver alone, see [`Components::ApiServer`].
    pub async fn start_without_workloads() -> Result<Self, Error> {
        Self::start_from(&ClusterOptions {
            components: Components::ApiServer,
            ..ClusterOptions::default()
        })
        .await
    }

    /// Starts a cluster of the given components.
    pub async fn start_from(options: &ClusterOptions) -> Result<Self, Error> {
        Box::pin(Self::start_at(Site::Loopback, options)).await
    }

    /// Starts a cluster for a real node, in its namespaces: without kwok, with all controllers, and with an API server
    /// that Pods can reach.
    #[cfg(feature = "node")]
    pub(crate) async fn start_in(namespaces: &Namespaces) -> Result<Self, Error> {
        let address = namespaces.address();
        let prefix = namespaces.command_line();
        Box::pin(Self::start_at(
            Site::Node { address, prefix },
            &ClusterOptions::default(),
        ))
        .await
    }

    async fn start_at(site: Site, options: &ClusterOptions) -> Result<Self, Error> {
        let tools = find_tools(options).await?;
        let pool = POOL.enter();
        let workload_tools = tools.workloads.clone();
        let is_reusable = !site.has_real_node();
        let (control_plane, client) = if is_reusable {
            Self::reusable(&pool, site, options, tools).await?
        } else {
            ControlPlane::start(site, options, tools).await?
        };
        let workloads = workload_tools
            .map(|tools| control_plane.endpoints.workloads(&tools))
            .transpose()?;
        Ok(Self {
            workloads,
            client,
            is_reusable,
            directory: directory(&control_plane.endpoints)?,
            control_plane: Some(control_plane),
            pool,
        })
    }

    /// Returns the control plane of an earlier test, or a new one.
    async fn reusable(
        pool: &PoolUser<Box<ControlPlane>>,
        site: Site,
        options: &ClusterOptions,
        tools: Tools,
    ) -> Result<(Box<ControlPlane>, Client), Error> {
        // One that does not return to its former content is not used again.
        if let Some(mut idle) = pool.take(|idle| idle.fits(options, &tools))
            && let Ok(client) = idle.reset().await
        {
            return Ok((idle, client));
        }
        let (mut started, client) = ControlPlane::start(site, options, tools).await?;
        started.remember(&client).await?;
        Ok((started, client))
    }

    /// Kills the API server and starts it again with the same etcd. The other components reconnect on their own.
    pub async fn restart_apiserver(&mut self) -> Result<(), Error> {
        self.is_reusable = false;
        let control_plane = self.control_plane.as_mut();
        control_plane.expect(NOT_DROPPED).restart_apiserver().await
    }

    fn control_plane(&self) -> &ControlPlane {
        self.control_plane.as_deref().expect(NOT_DROPPED)
    }

    /// Suspends kube-controller-manager, and with it the garbage collector.
    pub fn freeze_controller_manager(&self) -> Result<(), Error> {
        let workloads = self.workloads.as_ref();
        workloads.map_or(Ok(()), |workloads| workloads.controller_manager.freeze())
    }

    /// Returns a client with cluster-admin rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the path of the kubeconfig with cluster-admin rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Returns the path of the kubeconfig of a node's kubelet.
    #[cfg(feature = "node")]
    pub(crate) fn node_kubeconfig(&self) -> PathBuf {
        self.control_plane()
            .endpoints
            .directory
            .join("kubeconfig-kubelet")
    }

    /// Returns the path of the kubeconfig of a node's kube-proxy.
    #[cfg(feature = "node")]
    pub(crate) fn kube_proxy_kubeconfig(&self) -> PathBuf {
        self.control_plane()
            .endpoints
            .directory
            .join("kubeconfig-kube-proxy")
    }

    /// Returns a directory that is deleted with the cluster.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the directory with the output of the processes.
    pub fn logs(&self) -> PathBuf {
        self.directory.path().join("logs")
    }

    /// Returns the URL of the API server.
    pub fn server(&self) -> &str {
        &self.control_plane().endpoints.server
    }

    /// Returns a `kubectl` command with cluster-admin rights.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.control_plane().tools.kubectl);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            // Otherwise the discovery of each cluster would stay in the user's home directory.
            .env("KUBECACHEDIR", self.directory().join("kubectl-cache"));
        command
    }

    /// Returns the path of the program `kubectl`.
    pub fn kubectl_program(&self) -> &Path {
        &self.control_plane().tools.kubectl
    }

    /// Returns true if a user runs the same program by the name `kubectl`.
    pub fn is_kubectl_on_path(&self) -> bool {
        on_path("kubectl").is_some_and(|path| path == self.control_plane().tools.kubectl)
    }

    /// Runs `kubectl` and returns its standard output.
    pub fn run_kubectl(&self, args: &[&str]) -> Result<String, Error> {
        run(self.kubectl().args(args))
    }

    /// Creates a node that kwok simulates.
    pub async fn add_node(&self, name: &str) -> Result<(), Error> {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": name}}))
            .expect("the JSON is a Node");
        Api::all(self.client())
            .create(&PostParams::default(), &node)
            .await?;
        Ok(())
    }

    /// Creates a kubeconfig with exactly the rights of a service account. `server` replaces the URL of the API
    /// server, for example by that of a proxy.
    pub async fn service_account_kubeconfig(
        &self,
        namespace: &str,
        name: &str,
        server: Option<&str>,
    ) -> Result<PathBuf, Error> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(86_400),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let issued = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        let token = issued
            .status
            .and_then(|status| status.token)
            .unwrap_or_default();
        let path = self
            .directory
            .path()
            .join(format!("kubeconfig-{namespace}-{name}-{}", free_port()));
        let endpoints = &self.control_plane().endpoints;
        kubeconfig::write(
            &path,
            server.unwrap_or(&endpoints.server),
            &endpoints.authority,
            &token,
        )?;
        Ok(path)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.workloads = None;
        // After a failed test, its processes are stopped with everything that they have done.
        let is_reusable = self.is_reusable && !std::thread::panicking();
        if let Some(control_plane) = self.control_plane.take().filter(|_| is_reusable) {
            self.pool.keep(control_plane);
        }
    }
}

/// Why a cluster has a control plane.
const NOT_DROPPED: &str = "a control plane, until the cluster is dropped";

/// Creates the directory of a test: with the kubeconfig of its cluster, and a folder for the output of its processes.
fn directory(endpoints: &Endpoints) -> Result<TempDir, Error> {
    let directory = TempDir::with_prefix("control-plane-")
        .map_err(Error::file(Path::new("temporary directory")))?;
    let logs = directory.path().join("logs");
    fs::create_dir(&logs).map_err(Error::file(&logs))?;
    let kubeconfig = directory.path().join("kubeconfig");
    fs::copy(&endpoints.kubeconfig, &kubeconfig).map_err(Error::file(&kubeconfig))?;
    Ok(directory)
}

/// Finds or builds the programs on a thread of its own, because a build takes minutes.
async fn find_tools(options: &ClusterOptions) -> Result<Tools, Error> {
    let (components, download): (Components, _) = (options.components, options.download.clone());
    tokio::task::spawn_blocking(move || Tools::find_or_build(components, download.as_ref()))
        .await
        .expect("finding the programs does not panic")
}
