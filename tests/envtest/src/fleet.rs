//! Several replicas of Lockstep behind its Service: each webhook runs in its own network namespace, and a task takes
//! the part of kubelet and endpoint controller.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::error::Error;
use crate::installation::{Options, apply};
use crate::network::Network;
use crate::pod::Container;
use crate::probe::Probe;
use crate::process::{Process, free_port};
use crate::wait::eventually;

/// Arguments that make the API server dial the endpoints of a Service itself.
pub const APISERVER_ARGS: [&str; 1] = ["--enable-aggregator-routing=true"];

/// Interval of the readiness probes. A real kubelet probes less often, with the same results.
const PROBE_EVERY: Duration = Duration::from_millis(50);

const WEBHOOK_PORT: u16 = 9443;
const HEALTH_PORT: u16 = 8080;

/// Several Pods, each of which may run or not.
pub struct Fleet {
    options: Options,
    webhook_args: Vec<String>,
    deployment: Value,
    directory: PathBuf,
    logs: PathBuf,
    kubeconfig: PathBuf,
    pods: Vec<Pod>,
    phases: Phases,
    kubelet: JoinHandle<()>,
}

struct Pod {
    name: String,
    network: Network,
    webhook: Option<Process>,
    controller: Option<Process>,
    controller_health: u16,
}

/// Phase of each Pod, as known to the endpoint controller.
type Phases = Arc<Mutex<Vec<Phase>>>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Absent,
    Present {
        ready: bool,
    },
    Terminating {
        serving: bool,
    },
}

impl Fleet {
    /// Applies the manifests and prepares `count` Pods. None of them runs yet.
    ///
    /// The cluster must have been started with [`APISERVER_ARGS`].
    pub async fn apply(
        cluster: &Cluster,
        manifests: &Path,
        options: Options,
        webhook_args: &[&str],
        count: usize,
    ) -> Result<Self, Error> {
        let (deployment, kubeconfig) = apply(cluster, manifests, None).await?;
        let pods = (0..count).map(|index| {
            Ok(Pod {
                name: format!("pod-{index}"),
                network: Network::new()?,
                webhook: None,
                controller: None,
                controller_health: free_port(),
            })
        });
        let pods = pods.collect::<Result<Vec<_>, Error>>()?;
        let phases: Phases = Arc::new(Mutex::new(vec![Phase::Absent; count]));
        let addresses: Vec<_> = pods.iter().map(|pod| pod.network.address()).collect();
        let probes = addresses
            .iter()
            .map(|address| Probe::of(*address, HEALTH_PORT));
        let kubelet = Kubelet {
            probes: probes.collect::<Result<_, _>>()?,
            client: cluster.client(),
            namespace: text(&deployment["metadata"]["namespace"]),
            service: argument(&deployment, "--webhook-service=")?,
            addresses,
            phases: Arc::clone(&phases),
        };
        let policy_folder = cluster.directory().join("policy");
        fs::create_dir_all(&policy_folder).map_err(Error::file(&policy_folder))?;
        Ok(Self {
            options,
            webhook_args: webhook_args.iter().map(ToString::to_string).collect(),
            deployment,
            directory: cluster.directory().to_owned(),
            logs: cluster.logs(),
            kubeconfig,
            pods,
            phases,
            kubelet: tokio::spawn(kubelet.run()),
        })
    }

    /// Starts a new Pod: both containers and an empty shared volume.
    pub fn start(&mut self, index: usize) -> Result<(), Error> {
        let keys = self.keys(index);
        match std::fs::remove_dir_all(&keys) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::file(&keys)(error));
            }
            _ => {}
        }
        self.start_controller(index)?;
        self.start_webhook(index)?;
        self.set(index, Phase::Present { ready: false });
        Ok(())
    }

    /// Starts the controller container of a Pod.
    pub fn start_controller(&mut self, index: usize) -> Result<(), Error> {
        let pod = &self.pods[index];
        let container = Container::of(&self.deployment, "controller", &pod.name)?;
        let container = container.with_volumes_in(&self.directory, &self.keys(index));
        let mut command = Command::new(&self.options.program);
        command
            .args(container.args)
            .arg(format!(
                "--health-probe-bind-address=127.0.0.1:{}",
                pod.controller_health
            ))
            .args(&self.options.controller_args)
            .env_clear()
            .envs(container.env)
            .envs(self.options.controller_env.iter().cloned())
            .env("KUBECONFIG", &self.kubeconfig);
        let name = format!("controller-{}", pod.name);
        let process = Process::start(&name, &mut command, &self.logs)?;
        self.pods[index].controller = Some(process);
        Ok(())
    }

    /// Starts the webhook container of a Pod.
    pub fn start_webhook(&mut self, index: usize) -> Result<(), Error> {
        let pod = &self.pods[index];
        let container = Container::of(&self.deployment, "webhook", &pod.name)?;
        let container = container.with_volumes_in(&self.directory, &self.keys(index));
        let mut command = pod.network.command(&self.options.program);
        command
            .args(container.args)
            .args(&self.webhook_args)
            .envs(container.env);
        let name = format!("webhook-{}", pod.name);
        let process = Process::start(&name, &mut command, &self.logs)?;
        self.pods[index].webhook = Some(process);
        Ok(())
    }

    /// Returns the webhook process of a Pod.
    pub fn webhook(&mut self, index: usize) -> &mut Process {
        let webhook = self.pods[index].webhook.as_mut();
        webhook.expect("the webhook of the Pod has been started")
    }

    /// Returns the controller process of a Pod.
    pub fn controller(&mut self, index: usize) -> &mut Process {
        let controller = self.pods[index].controller.as_mut();
        controller.expect("the controller of the Pod has been started")
    }

    /// Terminates a Pod as the kubelet does: its endpoint is no longer ready, both containers get SIGTERM, and the
    /// Pod is removed when both have ended.
    pub async fn terminate(&mut self, index: usize) -> Result<(), Error> {
        self.set(index, Phase::Terminating { serving: true });
        let pod = &mut self.pods[index];
        for process in [pod.webhook.as_ref(), pod.controller.as_ref()]
            .into_iter()
            .flatten()
        {
            process.terminate()?;
        }
        for process in [pod.webhook.as_mut(), pod.controller.as_mut()]
            .into_iter()
            .flatten()
        {
            eventually("a container to end", async || process.exit_status()).await?;
        }
        self.set(index, Phase::Absent);
        Ok(())
    }

    /// Returns true if the endpoint of a Pod is ready.
    pub fn is_ready(&self, index: usize) -> bool {
        let phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        phases[index] == Phase::Present { ready: true }
    }

    /// Waits until the endpoint of a Pod is ready.
    pub async fn wait_until_ready(&mut self, index: usize) -> Result<(), Error> {
        let ready = eventually("a Pod to become ready", async || {
            self.is_ready(index).then_some(())
        })
        .await;
        ready.map_err(|error| {
            let pod = &self.pods[index];
            let processes = [pod.webhook.as_ref(), pod.controller.as_ref()];
            let tails: String = processes.into_iter().flatten().map(Process::tail).collect();
            error.with_hint(&tails)
        })
    }

    /// Returns the URL of the controller metrics of a Pod.
    pub fn controller_health_url(&self, index: usize) -> String {
        format!("http://127.0.0.1:{}", self.pods[index].controller_health)
    }

    /// Returns the address of the webhook of a Pod.
    pub fn address(&self, index: usize) -> SocketAddr {
        (self.pods[index].network.address(), WEBHOOK_PORT).into()
    }

    /// Returns the output of the controller of a Pod.
    pub fn log_of_controller(&self, index: usize) -> String {
        let log = format!("controller-{}.log", self.pods[index].name);
        std::fs::read_to_string(self.logs.join(log)).unwrap_or_default()
    }

    /// Returns the name of a Pod.
    pub fn name(&self, index: usize) -> &str {
        &self.pods[index].name
    }

    fn keys(&self, index: usize) -> PathBuf {
        self.directory.join(format!("tls-{index}"))
    }

    fn set(&self, index: usize, phase: Phase) {
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        phases[index] = phase;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

/// Task that probes the Pods and writes the `EndpointSlice`.
struct Kubelet {
    client: Client,
    namespace: String,
    service: String,
    addresses: Vec<Ipv4Addr>,
    probes: Vec<Probe>,
    phases: Phases,
}

impl Kubelet {
    async fn run(self) {
        let mut written = Value::Null;
        let mut ticks = tokio::time::interval(PROBE_EVERY);
        loop {
            ticks.tick().await;
            self.probe().await;
            let slice = self.slice();
            if slice != written && self.write(&slice).await {
                written = slice;
            }
        }
    }

    async fn probe(&self) {
        for (index, probe) in self.probes.iter().enumerate() {
            let is_ready = timeout(Duration::from_millis(500), probe.is_ready());
            let is_ready = is_ready.await.unwrap_or_default();
            let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
            if let Phase::Present { ready } = &mut phases[index] {
                *ready = is_ready;
            }
        }
    }

    fn slice(&self) -> Value {
        let phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoints = self.addresses.iter().zip(phases.iter());
        let endpoints: Vec<_> = endpoints
            .filter_map(|(address, phase)| {
                let (ready, serving, terminating) = match *phase {
                    Phase::Absent => return None,
                    Phase::Present { ready } => (ready, ready, false),
                    Phase::Terminating { serving } => (false, serving, true),
                };
                Some(json!({
                    "addresses": [address],
                    "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
                }))
            })
            .collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": format!("{}-fleet", self.service),
                "labels": {"kubernetes.io/service-name": self.service},
            },
            "addressType": "IPv4",
            "ports": [{"name": "https", "protocol": "TCP", "port": WEBHOOK_PORT}],
            "endpoints": endpoints,
        })
    }

    async fn write(&self, slice: &Value) -> bool {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams::apply("kubelet").force();
        let name = format!("{}-fleet", self.service);
        let written = slices.patch(&name, &params, &Patch::Apply(slice)).await;
        written.is_ok()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the value of an argument of the controller container.
fn argument(deployment: &Value, prefix: &str) -> Result<String, Error> {
    let args = Container::of(deployment, "controller", "pod-0")?.args;
    let found = args.iter().find_map(|arg| arg.strip_prefix(prefix));
    found
        .map(String::from)
        .ok_or_else(|| Error::Manifest(format!("the controller has no argument `{prefix}`")))
}
