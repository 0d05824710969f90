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

/// The controllers that tests rely on: garbage collection, namespaces and workloads, and nodes being ready. One name that the
/// manager does not know stops its start.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,deployment-controller,\
    replicaset-controller,daemonset-controller,statefulset-controller,job-controller,serviceaccount-controller,\
    node-lifecycle-controller";

const ADMIN_TOKEN: &str = "admin-of-a-test-cluster";

/// A real cluster on loopback. It ends with the value.
pub struct Cluster {
    // In the order in which they end.
    _scheduler: Process,
    _kwok: Process,
    _controller_manager: Process,
    _apiserver: Process,
    _etcd: Process,
    tools: Tools,
    server: String,
    client: Client,
    directory: TempDir,
}

impl Cluster {
    /// Starts a cluster: RBAC on, no node, no object.
    ///
    /// # Expected flow
    ///
    /// The first call on a machine builds the programs, which takes minutes; later ones take seconds.
    pub async fn start() -> Result<Self, Error> {
        let tools = Tools::find_or_build()?;
        let directory = TempDir::with_prefix("control-plane-")
            .map_err(Error::file(Path::new("temporary directory")))?;
        let path = directory.path();
        let logs = path.join("logs");
        fs::create_dir(&logs).map_err(Error::file(&logs))?;

        let etcd_url = format!("http://127.0.0.1:{}", free_port());
        let peer_url = format!("http://127.0.0.1:{}", free_port());
        let etcd = Process::start(
            "etcd",
            Command::new(&tools.etcd)
                .arg("--data-dir")
                .arg(path.join("etcd"))
                .args([
                    "--listen-client-urls",
                    &etcd_url,
                    "--advertise-client-urls",
                    &etcd_url,
                ])
                .args([
                    "--listen-peer-urls",
                    &peer_url,
                    "--initial-advertise-peer-urls",
                    &peer_url,
                ])
                .args(["--initial-cluster", &format!("default={peer_url}")])
                .args(["--unsafe-no-fsync", "--log-level=error"]),
            &logs,
        )?;

        let service_account_key = path.join("service-account.key");
        let service_account_public_key = path.join("service-account.pub");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("ring makes P-256 keys");
        fs::write(&service_account_key, key.serialize_pem())
            .map_err(Error::file(&service_account_key))?;
        fs::write(&service_account_public_key, key.public_key_pem())
            .map_err(Error::file(&service_account_public_key))?;
        let tokens = path.join("tokens.csv");
        let token = format!("{ADMIN_TOKEN},admin,admin,system:masters\n");
        fs::write(&tokens, token).map_err(Error::file(&tokens))?;
        let certificates = path.join("apiserver");
        let port = free_port();
        let mut apiserver = Process::start(
            "kube-apiserver",
            Command::new(&tools.apiserver)
                .args([
                    "--etcd-servers",
                    &etcd_url,
                    "--secure-port",
                    &port.to_string(),
                ])
                .args([
                    "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1",
                    "--endpoint-reconciler-type=none",
                ])
                .arg("--cert-dir")
                .arg(&certificates)
                .arg("--service-account-issuer=https://kubernetes.default.svc")
                .arg("--service-account-key-file")
                .arg(&service_account_public_key)
                .arg("--service-account-signing-key-file")
                .arg(&service_account_key)
                .arg("--authorization-mode=RBAC")
                .arg("--token-auth-file")
                .arg(&tokens)
                .args([
                    "--service-cluster-ip-range=10.0.0.0/24",
                    "--disable-admission-plugins=ServiceAccount",
                ]),
            &logs,
        )?;

        let server = format!("https://127.0.0.1:{port}");
        let authority = certificates.join("apiserver.crt");
        let admin = path.join("kubeconfig");
        kubeconfig::write(&admin, &server, &authority, ADMIN_TOKEN)?;
        let client = ready_client(&admin, &authority, &mut apiserver).await?;

        let controller_manager = Process::start(
            "kube-controller-manager",
            Command::new(&tools.controller_manager)
                .arg("--kubeconfig")
                .arg(&admin)
                .arg("--service-account-private-key-file")
                .arg(&service_account_key)
                .args(["--controllers", CONTROLLERS, "--leader-elect=false"])
                .args([
                    "--secure-port",
                    &free_port().to_string(),
                    "--bind-address=127.0.0.1",
                ])
                .arg("--cert-dir")
                .arg(path.join("controller-manager")),
            &logs,
        )?;
        let kwok = Process::start(
            "kwok",
            Command::new(&tools.kwok)
                .arg("--kubeconfig")
                .arg(&admin)
                .arg("--config")
                .arg(&tools.kwok_stages)
                .args([
                    "--manage-all-nodes=true",
                    "--server-address",
                    &format!("127.0.0.1:{}", free_port()),
                ]),
            &logs,
        )?;
        let scheduler = Process::start(
            "kube-scheduler",
            Command::new(&tools.scheduler)
                .arg("--kubeconfig")
                .arg(&admin)
                .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
                .args(["--secure-port", &free_port().to_string()])
                .arg("--cert-dir")
                .arg(path.join("scheduler")),
            &logs,
        )?;
        Ok(Self {
            _scheduler: scheduler,
            _kwok: kwok,
            _controller_manager: controller_manager,
            _apiserver: apiserver,
            _etcd: etcd,
            tools,
            server,
            client,
            directory,
        })
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The kubeconfig with every right.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A directory that ends with the cluster.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the processes' output is.
    pub fn logs(&self) -> PathBuf {
        self.directory.path().join("logs")
    }

    /// The URL of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// A `kubectl` with every right.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.tools.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    /// Runs `kubectl` to its end and returns what it printed.
    pub fn run_kubectl(&self, args: &[&str]) -> Result<String, Error> {
        run(self.kubectl().args(args))
    }

    /// Makes a node that kwok plays.
    pub async fn add_node(&self, name: &str) -> Result<(), Error> {
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": name}})).expect("a node");
        Api::all(self.client())
            .create(&PostParams::default(), &node)
            .await?;
        Ok(())
    }

    /// A kubeconfig with exactly the rights of a service account, for a server that may stand between.
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
        kubeconfig::write(&path, server.unwrap_or(&self.server), &authority, &token)?;
        Ok(path)
    }
}

/// Waits until the API server answers and has made its own namespaces.
async fn ready_client(
    kubeconfig: &Path,
    authority: &Path,
    apiserver: &mut Process,
) -> Result<Client, Error> {
    let ready = async {
        eventually("the API server writing its certificate", async || {
            authority.is_file().then_some(())
        })
        .await?;
        let read = Kubeconfig::read_from(kubeconfig)
            .map_err(|error| Error::Manifest(error.to_string()))?;
        let client = eventually("reading the API server's certificate", async || {
            let config =
                Config::from_custom_kubeconfig(read.clone(), &KubeConfigOptions::default())
                    .await
                    .ok()?;
            Client::try_from(config).ok()
        })
        .await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        eventually("the API server becoming ready", async || {
            let request = http::Request::get("/readyz").body(Vec::new()).ok()?;
            client.request_text(request).await.ok()?;
            namespaces.get("default").await.ok()
        })
        .await?;
        Ok(client)
    };
    tokio::select! {
        ready = ready => ready.map_err(|error: Error| error.with_hint(apiserver.tail())),
        () = apiserver.ended() => Err(Error::Failed { command: "kube-apiserver".to_owned(), output: apiserver.tail() }),
    }
}
