//! Election in which a replica takes part: for all objects, or for shards of them.

use std::num::NonZeroU32;

use futures::future::join_all;
use kube::Client;
use lockstep_controller::{
    ControllerRegistry, LeaderElectionMetrics, LeaderElector, Leadership, Metrics, Runnable,
    ShardElector,
};
use tokio::sync::watch;

use crate::registry::Operators;

/// Election in which a replica takes part.
pub(crate) enum Election {
    /// The leader reconciles all objects.
    Leader(Box<LeaderElector>),
    /// Each replica reconciles the objects of the shards that it holds.
    Shards(Box<ShardElector>),
}

impl Election {
    pub(crate) fn new(
        client: &Client,
        namespace: &str,
        lease: &str,
        identity: &str,
        shards: Option<NonZeroU32>,
        metrics: &LeaderElectionMetrics,
    ) -> Self {
        let client = client.clone();
        match shards {
            Some(shards) => Self::Shards(Box::new(ShardElector::new(
                client, namespace, lease, identity, shards, metrics,
            ))),
            None => Self::Leader(Box::new(LeaderElector::new(
                client, namespace, lease, identity, metrics,
            ))),
        }
    }

    /// Returns the deadline that operators check.
    pub(crate) fn leadership(&self) -> Leadership {
        match self {
            Self::Leader(elector) => elector.leadership(),
            Self::Shards(_) => Leadership::of_reconciliation(),
        }
    }

    /// Runs the controllers and the tasks of the leader whenever it is their turn, until `stop` turns true.
    pub(crate) async fn run(
        &self,
        stop: watch::Receiver<bool>,
        operators: &Operators,
        metrics: &Metrics,
        directory: &ControllerRegistry,
    ) {
        let shards = match self {
            Self::Leader(_) => None,
            Self::Shards(elector) => Some(elector.shards()),
        };
        let controllers = || operators.controllers(metrics, directory, shards.as_ref());
        match self {
            Self::Leader(elector) => {
                let all = |ending| {
                    let tasks = operators.leader_tasks().into_iter();
                    run(controllers().into_iter().chain(tasks).collect(), ending)
                };
                elector.run(stop, all).await;
            }
            Self::Shards(elector) => {
                let controllers = |ending| run(controllers(), ending);
                let tasks = |ending: watch::Receiver<bool>| async {
                    let mut has_ended = ending.clone();
                    run(operators.leader_tasks(), ending).await;
                    // A leader without tasks stays the leader.
                    let _ = has_ended.wait_for(|has_ended| *has_ended).await;
                };
                elector.run(stop, controllers, tasks).await;
            }
        }
    }
}

async fn run(all: Vec<Box<dyn Runnable>>, ending: watch::Receiver<bool>) {
    join_all(all.into_iter().map(|one| one.run(ending.clone()))).await;
}
