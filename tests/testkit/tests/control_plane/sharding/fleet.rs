//! Replicas of one test, their objects and the external system.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use lockstep_envtest::{Cluster, Process, eventually_within};
use lockstep_test::{TemporaryNamespace, apply, objects};
use serde_json::json;

use crate::sharding::api_proxy::ApiProxy;
use crate::sharding::external_system::ExternalSystem;
use crate::sharding::job::Job;
use crate::sharding::replica::{EXTERNAL_URL, IDENTITY, LEASE, NAMESPACE, SHARDS, TASKS};

const OBJECTS: usize = 24;

/// Time in which all replicas reach a new state: several times the duration of a Lease.
const DEADLINE: Duration = Duration::from_mins(2);

pub struct Fleet<'a> {
    cluster: &'a Cluster,
    namespace: String,
    names: Vec<String>,
    size: u64,
    external: ExternalSystem,
    pub rng: Rng,
    /// By the number of the replica.
    pub replicas: BTreeMap<usize, Replica>,
    started: usize,
}

pub struct Replica {
    pub process: Process,
    pub proxy: ApiProxy,
    pub shards: Option<u32>,
}

impl<'a> Fleet<'a> {
    /// Creates the objects in a namespace, and no replica yet.
    pub async fn start(cluster: &'a Cluster, namespace: &str, seed: u64) -> Self {
        TemporaryNamespace::make(cluster.client(), namespace).await;
        Self {
            cluster,
            namespace: namespace.to_owned(),
            names: (0..OBJECTS).map(|at| format!("job-{at}")).collect(),
            size: 0,
            external: ExternalSystem::start().await,
            rng: Rng::with_seed(seed),
            replicas: BTreeMap::new(),
            started: 0,
        }
    }

    /// Starts a replica with a number of shards, or without shards. Returns its number.
    pub async fn add(&mut self, shards: Option<u32>) -> usize {
        self.started += 1;
        let identity = format!("replica-{}", self.started);
        let server = self.cluster.server();
        let address = server.trim_start_matches("https://").trim_end_matches('/');
        let proxy = ApiProxy::to(address.parse().expect("an address")).await;
        let kubeconfig = fs::read_to_string(self.cluster.kubeconfig()).expect("a kubeconfig");
        let kubeconfig = kubeconfig.replace(address, &proxy.address().to_string());
        let directory = self.cluster.directory();
        let file = directory.join(format!("{}-{identity}.kubeconfig", self.namespace));
        fs::write(&file, kubeconfig).expect("the kubeconfig is written");
        let program = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(program);
        command
            .args(["--exact", "sharding::replica", "--ignored", "--nocapture"])
            .env("KUBECONFIG", file)
            .env(IDENTITY, &identity)
            .env(NAMESPACE, &self.namespace)
            .env(EXTERNAL_URL, self.external.url());
        if let Some(shards) = shards {
            command.env(SHARDS, shards.to_string());
        }
        let log = format!("{}-{identity}", self.namespace);
        let process = Process::start(&log, &mut command, &self.cluster.logs());
        let replica = Replica {
            process: process.expect("the process starts"),
            proxy,
            shards,
        };
        self.replicas.insert(self.started, replica);
        self.started
    }

    /// Ends a replica as the kubelet does.
    pub async fn terminate(&mut self, number: usize) {
        let replica = self.replicas.remove(&number).expect("a replica");
        replica.process.terminate().expect("a signal");
        let ended = eventually_within(DEADLINE, "the end of a replica", async || {
            replica.process.exit_status()
        });
        let status = ended.await.expect("the process ends");
        assert!(status.success(), "{status}: {}", replica.process.output());
    }

    pub fn kill(&mut self, number: usize) {
        let mut replica = self.replicas.remove(&number).expect("a replica");
        replica.process.kill();
    }

    /// Changes all objects and waits until each is reconciled in its new state, and the tasks of the leader run.
    pub async fn change_all(&mut self, after: &str) {
        self.size += 1;
        let api = self.objects();
        for name in &self.names {
            apply::<Job>(&api, name, &json!({"spec": {"size": self.size}})).await;
        }
        let mut left = Vec::new();
        let done = eventually_within(DEADLINE, "reconciliations", async || {
            self.external.check();
            left = self.external.not_reconciled(&self.names, self.size);
            left.is_empty().then_some(())
        });
        if let Err(error) = done.await {
            let first = api.get(&left[0]).await;
            for replica in self.replicas.values() {
                eprintln!("{}", replica.process.output());
            }
            panic!("after {after}: {error}: {left:?}: {first:#?}");
        }
        let tasks = [TASKS.to_owned()];
        let before = self.external.not_reconciled(&tasks, 0);
        assert!(before.is_empty(), "the tasks of the leader have run");
    }

    /// Waits until the shards are distributed in these numbers over the replicas.
    pub async fn balanced(&self, expected: &[usize]) {
        let mut last = Vec::new();
        let balanced = eventually_within(DEADLINE, "the balance", async || {
            let mut counts = BTreeMap::<String, usize>::new();
            for lease in self.leases().list(&ListParams::default()).await.ok()? {
                let is_shard = lease.name_any().starts_with(&format!("{LEASE}-shard-"));
                let holder = lease.spec.and_then(|spec| spec.holder_identity);
                if let Some(holder) = holder.filter(|_| is_shard) {
                    *counts.entry(holder).or_default() += 1;
                }
            }
            last = counts.into_values().collect();
            last.sort_unstable_by(|a, b| b.cmp(a));
            (last == expected).then_some(())
        });
        let balanced = balanced.await;
        balanced.unwrap_or_else(|error| panic!("{error}: {last:?} instead of {expected:?}"));
    }

    /// Ends all replicas. Returns the number of calls to the external system.
    pub async fn stop(mut self) -> usize {
        while let Some((number, _)) = self.replicas.first_key_value() {
            self.terminate(*number).await;
        }
        self.external.check()
    }

    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    fn objects(&self) -> Api<DynamicObject> {
        objects::<Job>(self.cluster.client(), Some(&self.namespace))
    }
}
