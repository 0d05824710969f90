//! Operator that waits for a slow external system, alone or as one of several replicas that share the objects.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::routing::get;
use kube::Client;
use lockstep_controller::{
    Config, Controller, FinalizeOutcome, FinalizeRequest, LeaderElectionMetrics, LeaderElector,
    Metrics, Readiness, ReconcileError, ReconcileOutput, Reconciler, Runnable, ShardElector,
    Shards, SyncRequest,
};
use lockstep_shared_validation::{PolicyHandle, Ruleset};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::batch::Batch;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address of the metrics endpoint.
    #[arg(long)]
    listen: SocketAddr,
    /// Maximum number of concurrent reconciliations.
    #[arg(long)]
    concurrency: NonZeroUsize,
    /// Time that the external system takes for a reconciliation, in milliseconds.
    #[arg(long)]
    latency_ms: u64,
    /// Identity of the replica.
    #[arg(long)]
    identity: String,
    /// Number of shards.
    #[arg(long)]
    shards: Option<NonZeroU32>,
}

struct SlowSystem {
    latency: Duration,
}

#[async_trait::async_trait]
impl Reconciler for SlowSystem {
    type Kind = Batch;

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Batch>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        tokio::time::sleep(self.latency).await;
        Ok(ReconcileOutput {
            readiness: Some(Readiness {
                ready: true,
                reason: "Done",
                message: String::new(),
            }),
            requeue_after: Duration::from_secs(1),
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

/// Reconciles until the process is killed.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let election = LeaderElectionMetrics::register(&mut registry);
    let ruleset = Arc::new(Ruleset::<Batch>::compile().context("the rules do not compile")?);
    let listener = TcpListener::bind(args.listen).await?;
    let registry = Arc::new(registry);
    let text = async move || {
        let mut text = String::new();
        encode(&mut text, &registry)
            .map(|()| text)
            .unwrap_or_default()
    };
    let routes = Router::new().route("/metrics", get(text));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let pace = Config {
        max_concurrent_reconciles: args.concurrency,
        ..Config::default()
    };
    let latency = Duration::from_millis(args.latency_ms);
    let kubernetes = client.clone();
    let controller = move |shards: Option<Shards>, ending| {
        let (client, policy) = (kubernetes.clone(), PolicyHandle::default());
        let operator = SlowSystem { latency };
        let run = Controller::new(
            "lockstep",
            client,
            ruleset.clone(),
            operator,
            metrics.clone(),
            policy,
        );
        let run = run.with_config(pace);
        let run = match shards {
            Some(shards) => run.with_shards(shards),
            None => run,
        };
        Box::new(run).run(ending)
    };
    let (_stop, stopping) = watch::channel(false);
    let (identity, lease) = (args.identity.clone(), "slow-operator");
    let work = match args.shards {
        Some(count) => {
            let elector = ShardElector::new(client, "default", lease, &identity, count, &election);
            let shards = elector.shards();
            tokio::spawn(async move {
                let controllers = |ending| controller(Some(shards.clone()), ending);
                let tasks = |mut ending: watch::Receiver<bool>| async move {
                    let _ = ending.wait_for(|ending| *ending).await;
                };
                elector.run(stopping, controllers, tasks).await;
            })
        }
        None => {
            let elector = LeaderElector::new(client, "default", lease, &identity, &election);
            tokio::spawn(async move {
                elector
                    .run(stopping, |ending| controller(None, ending))
                    .await;
            })
        }
    };
    work.await?;
    Ok(())
}
