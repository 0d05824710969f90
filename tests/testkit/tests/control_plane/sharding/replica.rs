//! Program of a replica.

use std::env;
use std::num::NonZeroU32;
use std::sync::Arc;

use kube::Client;
use lockstep_controller::{
    LeaderElectionMetrics, LeaderElector, Leadership, Metrics, Runnable, ShardElector, Shards,
};
use lockstep_test::operator;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Duration, timeout};

use crate::sharding::external_system::Connection;
use crate::sharding::job::Operator;

pub const IDENTITY: &str = "SHARDING_IDENTITY";
pub const NAMESPACE: &str = "SHARDING_NAMESPACE";
pub const SHARDS: &str = "SHARDING_SHARDS";
pub const EXTERNAL_URL: &str = "SHARDING_EXTERNAL_URL";

/// Name of the Lease for leader election.
pub const LEASE: &str = "jobs";

/// Name under which the tasks of the leader call the external system.
pub const TASKS: &str = "tasks-of-the-leader";

struct Replica {
    client: Client,
    namespace: String,
    /// Name that no other process has.
    process: String,
    external_url: String,
    metrics: Metrics,
}

impl Replica {
    fn operator(&self, leadership: Leadership) -> Operator {
        Operator {
            connection: Connection::new(&self.external_url, &self.process),
            leadership,
        }
    }

    async fn controller(
        &self,
        leadership: Leadership,
        shards: Option<Shards>,
        ending: watch::Receiver<bool>,
    ) {
        let operator = operator(
            self.client.clone(),
            self.operator(leadership),
            &self.metrics,
        );
        let controller = operator.namespaced(&self.namespace);
        let controller = match shards {
            Some(shards) => controller.with_shards(shards),
            None => controller,
        };
        Box::new(controller).run(ending).await;
    }

    async fn tasks(&self, leadership: Leadership, mut ending: watch::Receiver<bool>) {
        let operator = self.operator(leadership);
        while !*ending.borrow() {
            let _ = operator.work(TASKS, 0).await;
            let pause = Duration::from_millis(100);
            let _ = timeout(pause, ending.wait_for(|ending| *ending)).await;
        }
    }
}

/// Runs until SIGTERM.
pub async fn run() {
    // The log is in the output of the process.
    tracing_subscriber::fmt().with_ansi(false).init();
    let read = |name: &str| env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let (identity, namespace) = (read(IDENTITY), read(NAMESPACE));
    let client = Client::try_default().await.expect("a kubeconfig");
    let mut registry = Registry::default();
    let election = LeaderElectionMetrics::register(&mut registry);
    let (stop, stopping) = watch::channel(false);
    let mut terminations = signal(SignalKind::terminate()).expect("a signal handler");
    tokio::spawn(async move {
        terminations.recv().await;
        stop.send_replace(true);
    });
    let replica = Arc::new(Replica {
        client: client.clone(),
        namespace: namespace.clone(),
        process: format!("{identity}:{}", std::process::id()),
        external_url: read(EXTERNAL_URL),
        metrics: Metrics::register(&mut registry),
    });
    match env::var(SHARDS) {
        Ok(shards) => {
            let shards: NonZeroU32 = shards.parse().expect("a number of shards");
            let elector =
                ShardElector::new(client, &namespace, LEASE, &identity, shards, &election);
            let held = elector.shards();
            let deadline = Leadership::of_reconciliation;
            let controllers = |ending| replica.controller(deadline(), Some(held.clone()), ending);
            let tasks = |ending| replica.tasks(deadline(), ending);
            elector.run(stopping, controllers, tasks).await;
        }
        Err(_) => {
            let elector = LeaderElector::new(client, &namespace, LEASE, &identity, &election);
            let work = |ending: watch::Receiver<bool>| async {
                tokio::join!(
                    replica.controller(elector.leadership(), None, ending.clone()),
                    replica.tasks(elector.leadership(), ending),
                );
            };
            elector.run(stopping, work).await;
        }
    }
}
