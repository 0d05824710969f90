//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok as one cluster.

use std::fs;
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

use crate::error::Error;
use crate::kubeconfig;
use crate::process::{Process, free_port, run};
use crate::tools::Tools;
use crate::wait::eventually;

/// Enabled controllers: garbage collection, namespaces, workloads and node readiness. kube-controller-manager does not
/// start if it does not know one of the names.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,deployment-controller,\
    replicaset-controller,daemonset-controller,statefulset-controller,job-controller,serviceaccount-controller,\
    node-lifecycle-controller,clusterrole-aggregation-controller";

const ADMIN_TOKEN: &str = "admin-of-a-test-cluster";

/// Real cluster on loopback addresses. It is stopped when the value is dropped.
pub struct Cluster {
    // In the order of shutdown.
    _scheduler: Process,
    _kwok: Process,
    controller_manager: Process,
    apiserver: Process,
    _etcd: Process,
    apiserver_args: Vec<String>,
    tools: Tools,
    place: Box<Place>,
    client: Client,
    directory: TempDir,
}

impl Cluster {
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
        let tools = Tools::find_or_build()?;
        let directory = TempDir::with_prefix("control-plane-")
            .map_err(Error::file(Path::new("temporary directory")))?;
        let place = Place::prepare(directory.path())?;
        let etcd = place.etcd(&tools)?;
        let mut apiserver = place.apiserver(&tools, apiserver_args)?;
        let client = ready_client(&place.kubeconfig, &place.authority, &mut apiserver).await?;
        Ok(Self {
            _scheduler: place.scheduler(&tools)?,
            _kwok: place.kwok(&tools)?,
            controller_manager: place.controller_manager(&tools)?,
            apiserver,
            _etcd: etcd,
            apiserver_args: apiserver_args.iter().map(ToString::to_string).collect(),
            tools,
            place: Box::new(place),
            client,
            directory,
        })
    }

    /// Kills the API server and starts it again with the same etcd. The other components reconnect on their own.
    pub async fn restart_apiserver(&mut self) -> Result<(), Error> {
        self.apiserver.kill();
        let args: Vec<_> = self.apiserver_args.iter().map(String::as_str).collect();
        self.apiserver = self.place.apiserver(&self.tools, &args)?;
        let (kubeconfig, authority) = (&self.place.kubeconfig, &self.place.authority);
        ready_client(kubeconfig, authority, &mut self.apiserver).await?;
        Ok(())
    }

    /// Suspends kube-controller-manager, and with it the garbage collector.
    pub fn freeze_controller_manager(&self) -> Result<(), Error> {
        self.controller_manager.freeze()
    }

    /// Returns a client with cluster-admin rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the path of the kubeconfig with cluster-admin rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
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
        &self.place.server
    }

    /// Returns a `kubectl` command with cluster-admin rights.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.tools.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
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
            server.unwrap_or(&self.place.server),
            &authority,
            &token,
        )?;
        Ok(path)
    }
}

/// Paths, URLs and start commands of the components of one cluster.
struct Place {
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

impl Place {
    fn prepare(directory: &Path) -> Result<Self, Error> {
        let place = Self {
            logs: directory.join("logs"),
            etcd_url: format!("http://127.0.0.1:{}", free_port()),
            server: format!("https://127.0.0.1:{}", free_port()),
            authority: directory.join("apiserver/apiserver.crt"),
            kubeconfig: directory.join("kubeconfig"),
            service_account_key: directory.join("service-account.key"),
            directory: directory.to_owned(),
        };
        fs::create_dir(&place.logs).map_err(Error::file(&place.logs))?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("ring supports P-256 keys");
        place.write("service-account.key", &key.serialize_pem())?;
        place.write("service-account.pub", &key.public_key_pem())?;
        place.write(
            "tokens.csv",
            &format!("{ADMIN_TOKEN},admin,admin,system:masters\n"),
        )?;
        kubeconfig::write(
            &place.kubeconfig,
            &place.server,
            &place.authority,
            ADMIN_TOKEN,
        )?;
        Ok(place)
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Error> {
        let path = self.directory.join(name);
        fs::write(&path, content).map_err(Error::file(&path))
    }

    fn etcd(&self, tools: &Tools) -> Result<Process, Error> {
        let url = &self.etcd_url;
        let peer_url = format!("http://127.0.0.1:{}", free_port());
        let mut command = Command::new(&tools.etcd);
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
        let mut command = Command::new(&tools.apiserver);
        command
            .args(["--etcd-servers", &self.etcd_url, "--secure-port", port])
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg("--endpoint-reconciler-type=none")
            .arg("--cert-dir")
            .arg(self.directory.join("apiserver"))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--service-account-key-file")
            .arg(self.directory.join("service-account.pub"))
            .arg("--service-account-signing-key-file")
            .arg(&self.service_account_key)
            .arg("--authorization-mode=RBAC")
            .arg("--token-auth-file")
            .arg(self.directory.join("tokens.csv"))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .args(args);
        Process::start("kube-apiserver", &mut command, &self.logs)
    }

    fn controller_manager(&self, tools: &Tools) -> Result<Process, Error> {
        let mut command = self.client_command(&tools.controller_manager);
        command
            .arg("--service-account-private-key-file")
            .arg(&self.service_account_key)
            .args(["--controllers", CONTROLLERS, "--leader-elect=false"])
            // The default client limits would delay tests with hundreds of Deployments.
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            .args([
                "--secure-port",
                &free_port().to_string(),
                "--bind-address=127.0.0.1",
            ])
            .arg("--cert-dir")
            .arg(self.directory.join("controller-manager"));
        Process::start("kube-controller-manager", &mut command, &self.logs)
    }

    fn scheduler(&self, tools: &Tools) -> Result<Process, Error> {
        let mut command = self.client_command(&tools.scheduler);
        command
            .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            .args(["--secure-port", &free_port().to_string()])
            .arg("--cert-dir")
            .arg(self.directory.join("scheduler"));
        Process::start("kube-scheduler", &mut command, &self.logs)
    }

    fn kwok(&self, tools: &Tools) -> Result<Process, Error> {
        let mut command = self.client_command(&tools.kwok);
        command
            .arg("--config")
            .arg(&tools.kwok_stages)
            .arg("--manage-all-nodes=true")
            // A node without a current lease makes its Pods unready.
            .arg("--node-lease-duration-seconds=40")
            .args(["--server-address", &format!("127.0.0.1:{}", free_port())]);
        Process::start("kwok", &mut command, &self.logs)
    }

    fn client_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command
    }
}

/// Waits until the API server is ready and has created its namespaces.
async fn ready_client(
    kubeconfig: &Path,
    authority: &Path,
    apiserver: &mut Process,
) -> Result<Client, Error> {
    let ready = async {
        eventually("the API server to write its certificate", async || {
            authority.is_file().then_some(())
        })
        .await?;
        let read = Kubeconfig::read_from(kubeconfig)
            .map_err(|error| Error::Manifest(error.to_string()))?;
        let mut last = String::new();
        let ready = eventually("the API server to become ready", async || {
            let answering = answering(read.clone()).await;
            answering.map_err(|error| last = error.to_string()).ok()
        });
        let ready = ready.await;
        ready.map_err(|error| error.with_hint(&format!("; the last error: {last}")))
    };
    tokio::select! {
        ready = ready => ready.map_err(|error: Error| error.with_hint(&apiserver.tail())),
        () = apiserver.ended() => Err(Error::Failed { command: "kube-apiserver".to_owned(), output: apiserver.tail() }),
    }
}

/// Returns a client if the API server answers. Every attempt creates a new client, because an earlier one may have read
/// the certificate file while it was still empty.
async fn answering(kubeconfig: Kubeconfig) -> Result<Client, Box<dyn std::error::Error>> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let request = http::Request::get("/readyz").body(Vec::new())?;
    client.request_text(request).await?;
    Api::<Namespace>::all(client.clone()).get("default").await?;
    Ok(client)
}
