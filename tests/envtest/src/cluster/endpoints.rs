//! Paths, URLs and start commands of the components of a cluster.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::cluster::serving_certificate;
use crate::cluster::site::{NODE, Site};
use crate::error::Error;
use crate::kubeconfig;
use crate::process::{Process, free_port};
use crate::tools::{Tools, WorkloadTools};
use crate::wait::eventually;

/// Enabled controllers: garbage collection, namespaces, workloads and node readiness. kube-controller-manager does not
/// start if it does not know one of the names.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,deployment-controller,\
    replicaset-controller,daemonset-controller,statefulset-controller,job-controller,serviceaccount-controller,\
    node-lifecycle-controller,clusterrole-aggregation-controller";

/// Address of the Service `kubernetes`.
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

const ADMIN_TOKEN: &str = "admin-of-a-test-cluster";
const KUBELET_TOKEN: &str = "kubelet-of-a-test-cluster";
const KUBE_PROXY_TOKEN: &str = "kube-proxy-of-a-test-cluster";

/// Components that run workloads, in the order of shutdown.
pub(crate) struct Workloads {
    _scheduler: Process,
    _kwok: Option<Process>,
    pub(crate) controller_manager: Process,
}

/// Paths, URLs and start commands of the components of one cluster.
pub(crate) struct Endpoints {
    site: Site,
    pub(crate) directory: PathBuf,
    logs: PathBuf,
    pub(crate) etcd_url: String,
    pub(crate) server: String,
    /// Certificate of the authority of the API server's certificate.
    pub(crate) authority: PathBuf,
    /// Kubeconfig with cluster-admin rights.
    pub(crate) kubeconfig: PathBuf,
    service_account_key: PathBuf,
}

impl Endpoints {
    pub(crate) fn prepare(directory: &Path, site: Site) -> Result<Self, Error> {
        let endpoints = Self {
            logs: directory.join("logs"),
            etcd_url: format!("http://127.0.0.1:{}", free_port()),
            server: format!("https://{}:{}", site.address(), free_port()),
            authority: directory.join("apiserver/ca.crt"),
            kubeconfig: directory.join("kubeconfig"),
            service_account_key: directory.join("service-account.key"),
            directory: directory.to_owned(),
            site,
        };
        fs::create_dir(&endpoints.logs).map_err(Error::file(&endpoints.logs))?;
        let addresses = [endpoints.site.address(), SERVICE_ADDRESS].map(IpAddr::V4);
        serving_certificate::write(&directory.join("apiserver"), &addresses)?;
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

    pub(crate) fn etcd(&self, tools: &Tools) -> Result<Process, Error> {
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

    pub(crate) fn apiserver(&self, tools: &Tools, args: &[String]) -> Result<Process, Error> {
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
            .arg("--tls-cert-file")
            .arg(self.directory.join("apiserver/apiserver.crt"))
            .arg("--tls-private-key-file")
            .arg(self.directory.join("apiserver/apiserver.key"))
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

    pub(crate) fn workloads(&self, tools: &WorkloadTools) -> Result<Workloads, Error> {
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
    pub(crate) async fn ready_client(
        &self,
        etcd: &mut Process,
        apiserver: &mut Process,
    ) -> Result<Client, Error> {
        let ready = async {
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

/// Returns a client if the API server answers.
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
    use std::net::TcpListener;

    use tempfile::TempDir;

    use super::*;
    use crate::components::Components;

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
