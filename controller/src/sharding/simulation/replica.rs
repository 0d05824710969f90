//! Simulated replica.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::leader_election::fake_leases::FakeLeases;
use crate::leader_election::{LeaderElectionMetrics, LeaderElector, Leadership};
use crate::sharding::held_shards::Shards;
use crate::sharding::shard_elector::ShardElector;
use crate::sharding::simulation::external_system::{CALL, ExternalSystem, TASKS, uids};

/// Name of the Lease for leader election.
pub(crate) const LEASE: &str = "lease";

/// Longest pause between two reconciliations of an object.
const PAUSE: Duration = Duration::from_secs(2);

/// Simulated replica. Its process can be killed and frozen, and it can be cut off from the API server.
pub(crate) struct Replica {
    stop: watch::Sender<bool>,
    is_frozen: watch::Sender<bool>,
    is_cut_off: watch::Sender<bool>,
    process: JoinHandle<()>,
}

impl Replica {
    pub(crate) fn start(
        leases: &FakeLeases,
        external: &ExternalSystem,
        identity: &str,
        shards: Option<u32>,
    ) -> Self {
        let is_cut_off = watch::Sender::new(false);
        let client = leases.client(&is_cut_off);
        let (stop, stopping) = watch::channel(false);
        let (external, identity) = (external.clone(), identity.to_owned());
        let work = async move {
            let metrics = LeaderElectionMetrics::register(&mut Registry::default());
            match shards.and_then(NonZeroU32::new) {
                Some(count) => {
                    let elector =
                        ShardElector::new(client, "ns", LEASE, &identity, count, &metrics);
                    let shards = elector.shards();
                    let controllers =
                        |ending| reconcile_held(&external, &identity, &shards, ending);
                    let deadline = Leadership::of_reconciliation();
                    let tasks = |ending| repeat(&external, &identity, TASKS, &deadline, ending);
                    elector.run(stopping, controllers, tasks).await;
                }
                None => {
                    let elector = LeaderElector::new(client, "ns", LEASE, &identity, &metrics);
                    let deadline = elector.leadership();
                    let (external, identity) = (&external, &identity);
                    let all = |ending: watch::Receiver<bool>| {
                        let deadline = deadline.clone();
                        async move {
                            let names: Vec<_> = uids().chain([TASKS.to_owned()]).collect();
                            let each = names.iter();
                            let each = each.map(|name| {
                                repeat(external, identity, name, &deadline, ending.clone())
                            });
                            join_all(each).await;
                        }
                    };
                    elector.run(stopping, all).await;
                }
            }
        };
        let is_frozen = watch::Sender::new(false);
        let process = tokio::spawn(unless_frozen(Box::pin(work), is_frozen.subscribe()));
        Self {
            stop,
            is_frozen,
            is_cut_off,
            process,
        }
    }

    pub(crate) fn kill(self) {
        self.process.abort();
    }

    /// Asks the process to end, which it does when it is neither frozen nor cut off. The result ends with it.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        self.stop.send_replace(true);
        tokio::spawn(async move {
            let _ = self.process.await;
            drop((self.is_frozen, self.is_cut_off));
        })
    }

    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.is_frozen.send_replace(is_frozen);
    }

    pub(crate) fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.send_replace(is_cut_off);
    }
}

/// Polls a process only while it is not frozen.
async fn unless_frozen(mut process: BoxFuture<'static, ()>, mut is_frozen: watch::Receiver<bool>) {
    let mut thawed: Option<BoxFuture<'static, ()>> = None;
    std::future::poll_fn(move |context| {
        if *is_frozen.borrow_and_update() {
            let mut is_frozen = is_frozen.clone();
            let wait = thawed.get_or_insert_with(|| {
                Box::pin(async move {
                    let _ = is_frozen.wait_for(|is_frozen| !is_frozen).await;
                })
            });
            if Pin::new(wait).poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        thawed = None;
        process.as_mut().poll(context)
    })
    .await;
}

/// Reconciles the objects of the held shards again and again.
async fn reconcile_held(
    external: &ExternalSystem,
    identity: &str,
    shards: &Shards,
    ending: watch::Receiver<bool>,
) {
    let deadline = Leadership::of_reconciliation();
    let one = async |uid: String| {
        while !*ending.borrow() {
            if let Some(permit) = shards.permit(&uid, u64::MAX) {
                permit
                    .run(reconcile(external, identity, &uid, &deadline))
                    .await;
            }
            sleep(external.time(PAUSE)).await;
        }
    };
    join_all(uids().map(one)).await;
}

/// Works on something again and again.
async fn repeat(
    external: &ExternalSystem,
    identity: &str,
    name: &str,
    deadline: &Leadership,
    ending: watch::Receiver<bool>,
) {
    while !*ending.borrow() {
        reconcile(external, identity, name, deadline).await;
        sleep(external.time(PAUSE)).await;
    }
}

/// Calls the external system as an operator does: only if the call ends before the deadline.
async fn reconcile(external: &ExternalSystem, identity: &str, name: &str, deadline: &Leadership) {
    let session = external.session();
    for _ in 0..3 {
        if !deadline.outlasts(CALL) {
            return;
        }
        external.call(name, identity, session).await;
    }
}
