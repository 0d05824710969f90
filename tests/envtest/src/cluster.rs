//! etcd and kube-apiserver, and usually kube-controller-manager, kube-scheduler and kwok, as one cluster.

#[cfg(feature = "node")]
use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::json;
use tempfile::TempDir;

use crate::cache::on_path;
use crate::components::{ClusterOptions, Components, Programs};
use crate::error::Error;
use crate::kubeconfig;
#[cfg(feature = "node")]
use crate::node::Namespaces;
use crate::process::{Process, free_port, run};
use crate::tools::{Tools, WorkloadTools};
use crate::wait::eventually;

/// Enabled controllers: garbage collection, namespaces, workloads and node readiness. kube-controller-manager does not
/// start if it does not know one of the names.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,deployment-controller,\
    replicaset-controller,daemonset-controller,statefulset-controller,job-controller,serviceaccount-controller,\
    node-lifecycle-controller,clusterrole-aggregation-controller";

const ADMIN_TOKEN: &str = "admin-of-a-test-cluster";

/// Name of the real node of a cluster that has one.
pub(crate) const NODE: &str = "node";
const KUBELET_TOKEN: &str = "kubelet-of-a-test-cluster";
const KUBE_PROXY_TOKEN: &str = "kube-proxy-of-a-test-cluster";

/// Real cluster on loopback addresses. It is stopped when the value is dropped.
pub struct Cluster {
    // In the order of shutdown.
    workloads: Option<Workloads>,
    apiserver: Process,
    etcd: Process,
    apiserver_args: Vec<String>,
    tools: Tools,
    endpoints: Box<Endpoints>,
    client: Client,
    directory: TempDir,
}

/// Components that run workloads, in the order of shutdown.
struct Workloads {
    _scheduler: Process,
    _kwok: Option<Process>,
    controller_manager: Process,
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

    /// Starts a cluster of the given components.
    pub async fn start_from(options: &ClusterOptions) -> Result<Self, Error> {
        Self::start_at(Site::Loopback, options).await
    }

    /// Starts a cluster for a real node, in its namespaces: without kwok, with all controllers, and with an API server
    /// that Pods can reach.
    #[cfg(feature = "node")]
    pub(crate) async fn start_in(namespaces: &Namespaces) -> Result<Self, Error> {
        let address = namespaces.address();
        let prefix = namespaces.command_line();
        Self::start_at(Site::Node { address, prefix }, &ClusterOptions::default()).await
    }

    async fn start_at(site: Site, options: &ClusterOptions) -> Result<Self, Error> {
        let tools = find_tools(options).await?;
        let directory = TempDir::with_prefix("control-plane-")
            .map_err(Error::file(Path::new("temporary directory")))?;
        let endpoints = Endpoints::prepare(directory.path(), site)?;
        let mut etcd = endpoints.etcd(&tools)?;
        let args: Vec<_> = options.apiserver_args.iter().map(String::as_str).collect();
        let mut apiserver = endpoints.apiserver(&tools, &args)?;
        let client = endpoints.ready_client(&mut etcd, &mut apiserver).await?;
        let workloads = tools.workloads.as_ref();
        let workloads = workloads
            .map(|tools| endpoints.workloads(tools))
            .transpose()?;
        Ok(Self {
            workloads,
            apiserver,
            etcd,
            apiserver_args: options.apiserver_args.clone(),
            tools,
            endpoints: Box::new(endpoints),
            client,
            directory,
        })
    }

    /// Kills the API server and starts it again with the same etcd. The other components reconnect on their own.
    pub async fn restart_apiserver(&mut self) -> Result<(), Error> {
        self.apiserver.kill();
        let args: Vec<_> = self.apiserver_args.iter().map(String::as_str).collect();
        self.apiserver = self.endpoints.apiserver(&self.tools, &args)?;
        let ready = self
            .endpoints
            .ready_client(&mut self.etcd, &mut self.apiserver);
        ready.await.map(drop)
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
        self.directory.path().join("kubeconfig-kubelet")
    }

    /// Returns the path of the kubeconfig of a node's kube-proxy.
    #[cfg(feature = "node")]
    pub(crate) fn kube_proxy_kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig-kube-proxy")
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
        &self.endpoints.server
    }

    /// Returns a `kubectl` command with cluster-admin rights.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.tools.kubectl);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            // Otherwise the discovery of each cluster would stay in the user's home directory.
            .env("KUBECACHEDIR", self.directory().join("kubectl-cache"));
        command
    }

    /// Returns the path of the program `kubectl`.
    pub fn kubectl_program(&self) -> &Path {
        &self.tools.kubectl
    }

    /// Returns true if a user runs the same program by the name `kubectl`.
    pub fn is_kubectl_on_path(&self) -> bool {
        on_path("kubectl").is_some_and(|path| path == self.tools.kubectl)
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
        let authority = self.directory.path().join("apiserver/apiserver.crt");
        kubeconfig::write(
            &path,
            server.unwrap_or(&self.endpoints.server),
            &authority,
            &token,
        )?;
        Ok(path)
    }
}

/// Place where the components run.
enum Site {
    /// On loopback addresses of this machine, with nodes that kwok simulates.
    Loopback,
    /// In the namespaces of a real node.
    #[cfg(feature = "node")]
    Node {
        address: Ipv4Addr,
        /// Program and arguments that run a command in the namespaces.
        prefix: Vec<OsString>,
    },
}

impl Site {
    fn command(&self, program: &Path) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            #[cfg(feature = "node")]
            Self::Node { prefix, .. } => {
                let mut command = Command::new(&prefix[0]);
                command.args(&prefix[1..]).arg(program);
                command
            }
        }
    }

    /// Returns the address of the API server.
    fn address(&self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            #[cfg(feature = "node")]
            Self::Node { address, .. } => *address,
        }
    }

    fn has_real_node(&self) -> bool {
        !matches!(self, Self::Loopback)
    }
}

/// Paths, URLs and start commands of the components of one cluster.
struct Endpoints {
    site: Site,
    directory: PathBuf,
    logs: PathBuf,
    etcd_url: String,
    server: String,
    /// Self-signed certificate that the API server generates.
    authority: PathBuf,
    /// Kubeconfig with cluster-admin rights.
    kubeconfig: PathBuf,
    service_account_key: PathBuf,
}

impl Endpoints {
    fn prepare(directory: &Path, site: Site) -> Result<Self, Error> {
        let endpoints = Self {
            logs: directory.join("logs"),
            etcd_url: format!("http://127.0.0.1:{}", free_port()),
            server: format!("https://{}:{}", site.address(), free_port()),
            authority: directory.join("apiserver/apiserver.crt"),
            kubeconfig: directory.join("kubeconfig"),
            service_account_key: directory.join("service-account.key"),
            directory: directory.to_owned(),
            site,
        };
        fs::create_dir(&endpoints.logs).map_err(Error::file(&endpoints.logs))?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("ring supports P-256 keys");
        endpoints.write("service-account.key", &key.serialize_pem())?;
        endpoints.write("service-account.pub", &key.public_key_pem())?;
        endpoints.write(
            "tokens.csv",
            &format!(
                "{ADMIN_TOKEN},admin,admin,system:masters\n\
                 {KUBELET_TOKEN},system:node:{NODE},kubelet,system:nodes\n\
                 {KUBE_PROXY_TOKEN},system:kube-proxy,kube-proxy\n"
            ),
        )?;
        let clients = [
            ("kubeconfig", ADMIN_TOKEN),
            ("kubeconfig-kubelet", KUBELET_TOKEN),
            ("kubeconfig-kube-proxy", KUBE_PROXY_TOKEN),
        ];
        for (name, token) in clients {
            let path = directory.join(name);
            kubeconfig::write(&path, &endpoints.server, &endpoints.authority, token)?;
        }
        Ok(endpoints)
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Error> {
        let path = self.directory.join(name);
        fs::write(&path, content).map_err(Error::file(&path))
    }

    fn etcd(&self, tools: &Tools) -> Result<Process, Error> {
        let url = &self.etcd_url;
        let peer_url = format!("http://127.0.0.1:{}", free_port());
        let mut command = self.site.command(&tools.etcd);
        command
            .arg("--data-dir")
            .arg(self.directory.join("etcd"))
            .args(["--listen-client-urls", url, "--advertise-client-urls", url])
            .args([
                "--listen-peer-urls",
                &peer_url,
                "--initial-advertise-peer-urls",
                &peer_url,
            ])
            .args(["--initial-cluster", &format!("default={peer_url}")])
            .args(["--unsafe-no-fsync", "--log-level=error"]);
        Process::start("etcd", &mut command, &self.logs)
    }

    fn apiserver(&self, tools: &Tools, args: &[&str]) -> Result<Process, Error> {
        let port = self.server.rsplit(':').next().unwrap_or_default();
        let address = self.site.address();
        let mut command = self.site.command(&tools.apiserver);
        if self.site.has_real_node() {
            // Pods reach the API server through the Service `kubernetes`, whose endpoint is the advertised address.
            command
                .args(["--bind-address=0.0.0.0", "--authorization-mode=Node,RBAC"])
                .arg("--allow-privileged")
                // No name server knows the name of the node.
                .arg("--kubelet-preferred-address-types=InternalIP");
        } else {
            command
                .args(["--bind-address=127.0.0.1", "--authorization-mode=RBAC"])
                .arg("--endpoint-reconciler-type=none");
        }
        command
            .args(["--etcd-servers", &self.etcd_url, "--secure-port", port])
            .arg(format!("--advertise-address={address}"))
            .arg("--cert-dir")
            .arg(self.directory.join("apiserver"))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--service-account-key-file")
            .arg(self.directory.join("service-account.pub"))
            .arg("--service-account-signing-key-file")
            .arg(&self.service_account_key)
            .arg("--token-auth-file")
            .arg(self.directory.join("tokens.csv"))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .args(args);
        Process::start("kube-apiserver", &mut command, &self.logs)
    }

    fn workloads(&self, tools: &WorkloadTools) -> Result<Workloads, Error> {
        Ok(Workloads {
            _scheduler: self.scheduler(tools)?,
            _kwok: self.kwok(tools)?,
            controller_manager: self.controller_manager(tools)?,
        })
    }

    fn controller_manager(&self, tools: &WorkloadTools) -> Result<Process, Error> {
        let mut command = self.client_command(&tools.controller_manager);
        command
            .arg("--service-account-private-key-file")
            .arg(&self.service_account_key)
            .arg("--leader-elect=false")
            // The default client limits would delay tests with hundreds of Deployments.
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            .args([
                "--secure-port",
                &free_port().to_string(),
                "--bind-address=127.0.0.1",
            ])
            .arg("--cert-dir")
            .arg(self.directory.join("controller-manager"));
        if self.site.has_real_node() {
            // Pods verify the API server with the ConfigMap that a controller makes of this file.
            command.arg("--root-ca-file").arg(&self.authority);
        } else {
            command.args(["--controllers", CONTROLLERS]);
        }
        Process::start("kube-controller-manager", &mut command, &self.logs)
    }

    fn scheduler(&self, tools: &WorkloadTools) -> Result<Process, Error> {
        let mut command = self.client_command(&tools.scheduler);
        command
            .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            .args(["--secure-port", &free_port().to_string()])
            .arg("--cert-dir")
            .arg(self.directory.join("scheduler"));
        Process::start("kube-scheduler", &mut command, &self.logs)
    }

    fn kwok(&self, tools: &WorkloadTools) -> Result<Option<Process>, Error> {
        if self.site.has_real_node() {
            return Ok(None);
        }
        let mut command = self.client_command(&tools.kwok);
        command
            .arg("--config")
            .arg(&tools.kwok_stages)
            .arg("--manage-all-nodes=true")
            // A node without a current lease makes its Pods unready.
            .arg("--node-lease-duration-seconds=40")
            .args(["--server-address", &format!("127.0.0.1:{}", free_port())]);
        Process::start("kwok", &mut command, &self.logs).map(Some)
    }

    fn client_command(&self, program: &Path) -> Command {
        let mut command = self.site.command(program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command
    }

    /// Waits until the API server is ready and has created its namespaces.
    async fn ready_client(
        &self,
        etcd: &mut Process,
        apiserver: &mut Process,
    ) -> Result<Client, Error> {
        let ready = async {
            eventually("the API server to write its certificate", async || {
                self.authority.is_file().then_some(())
            })
            .await?;
            let read = Kubeconfig::read_from(&self.kubeconfig)
                .map_err(|error| Error::Manifest(error.to_string()))?;
            let mut last = String::new();
            let ready = eventually("the API server to become ready", async || {
                let client = responding_client(read.clone()).await;
                client.map_err(|error| last = error.to_string()).ok()
            });
            let ready = ready.await;
            ready.map_err(|error| error.with_hint(&format!("; the last error: {last}")))
        };
        tokio::select! {
            ready = ready => ready.map_err(|error: Error| error.with_hint(&apiserver.tail())),
            () = apiserver.ended() => Err(apiserver.start_error()),
            () = etcd.ended() => Err(etcd.start_error()),
        }
    }
}

/// Finds or builds the programs on a thread of its own, because a build takes minutes.
async fn find_tools(options: &ClusterOptions) -> Result<Tools, Error> {
    let (components, download): (Components, _) = (options.components, options.download.clone());
    tokio::task::spawn_blocking(move || Tools::find_or_build(components, download.as_ref()))
        .await
        .expect("finding the programs does not panic")
}

/// Returns a client if the API server answers. Every attempt creates a new client, because an earlier one may have read
/// the certificate file while it was still empty.
async fn responding_client(kubeconfig: Kubeconfig) -> Result<Client, Box<dyn std::error::Error>> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let request = http::Request::get("/readyz").body(Vec::new())?;
    client.request_text(request).await?;
    Api::<Namespace>::all(client.clone()).get("default").await?;
    Ok(client)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[tokio::test]
    async fn a_port_of_another_process_is_the_named_reason() {
        let tools = Tools::find_or_build(Components::ApiServer, None).expect("the programs");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let taken = taken.local_addr().expect("an address");
        for program in ["etcd", "kube-apiserver"] {
            let directory = TempDir::new().expect("a directory");
            let mut endpoints =
                Endpoints::prepare(directory.path(), Site::Loopback).expect("the files");
            if program == "etcd" {
                endpoints.etcd_url = format!("http://{taken}");
            } else {
                endpoints.server = format!("https://{taken}");
            }
            let mut etcd = endpoints.etcd(&tools).expect("a process");
            let mut apiserver = endpoints.apiserver(&tools, &[]).expect("a process");
            let error = endpoints.ready_client(&mut etcd, &mut apiserver).await;
            let error = error.err().expect("the program cannot start");
            assert!(
                matches!(&error, Error::PortInUse { program: named, .. } if named == program),
                "{error}"
            );
        }
    }
}
