//! `lockstep controller`: the loop, and the gate's keys. The one process with cluster credentials.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use certs::Keeper;
use controller::{
    AnyListens, Arming, ArmingMetrics, CallMetrics, Candidate, Directory, LeaderMetrics, Lookout,
    Metrics, TokenBucket,
};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use shared_validation::Rulesets;
use tokio::sync::watch;

use crate::crds::LookoutArgs;
use crate::keeping::KeyArgs;
use crate::kinds::{KindArgs, OperatorArgs, Operators};
use crate::knocking::KnockingArgs;
use crate::scope::ScopeArgs;
use crate::{admin, logging, policy, serving};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where /healthz, /readyz and /metrics are served, over HTTP.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_listen: SocketAddr,
    /// The namespace of the installation.
    #[arg(long, env = "POD_NAMESPACE", default_value = manifests::names::NAMESPACE)]
    namespace: String,
    /// The Lease that the replicas elect their leader by.
    #[arg(long, default_value = manifests::names::LEASE)]
    lease: String,
    /// What this replica is called in the Lease; no other one may have the name.
    #[arg(long, env = "POD_NAME", default_value = "lockstep")]
    identity: String,
    #[command(flatten)]
    keys: KeyArgs,
    /// The Deployment of the gate: when it is gone or wants no replica, the last one disarms the gate.
    #[arg(long, default_value = manifests::names::APP)]
    deployment: String,
    /// How often a canary is sent through the API server, to see the gate refuse it.
    #[arg(long, default_value = "1m", value_parser = serving::duration)]
    canary_every: Duration,
    /// Turn the failure policy back to `Ignore` when canaries fail and no replica of the gate takes
    /// connections. What is invalid can then be stored; without this, nothing can.
    #[arg(long)]
    disarm_without_replicas: bool,
    #[command(flatten)]
    lookout: LookoutArgs,
    #[command(flatten)]
    knocking: KnockingArgs,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    operators: OperatorArgs,
    #[command(flatten)]
    policy: policy::PolicyArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    logging::start(None);
    // kube and AWS each bring rustls; the process decides for both.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("a TLS provider was set before"))?;
    // Beside the connections that it waits for, and not on a thread of its own, which each answer would have to
    // wake.
    serving::block_on(async { tokio::spawn(serve(args)).await? })
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let stop = serving::stop_signal()?;
    let mut registry = Registry::default();
    let calls = CallMetrics::register(&mut registry);
    // The lease and the gate's keys never wait behind objects.
    let client = client(&calls, &TokenBucket::unlimited()).await?;
    let paced = self::client(&calls, &args.operators.api_calls()).await?;
    let metrics = Metrics::register(&mut registry);
    let kinds = args.kinds.choose()?;
    let rulesets = kinds.rulesets();
    let directory = Directory::default();
    let of_policy = directory.clone();
    let look_at_all = move || of_policy.look_at_all();
    let policy = args.policy.follow(&kinds.all, &mut registry, look_at_all);
    let candidate = Candidate::new(
        client.clone(),
        &args.namespace,
        &args.lease,
        &args.identity,
        &LeaderMetrics::register(&mut registry),
    );
    let tenure = candidate.tenure();
    let namespaces = args.scope.namespaces(kinds.beyond_namespaces())?;
    let operators =
        Operators::new(&paced, &args.operators, kinds, policy, tenure, namespaces).await?;
    // Its configuration is the cluster's.
    let has_gate = namespaces.is_empty();
    let gate = has_gate.then(|| args.gate(&client, rulesets, &mut registry));
    let gate = gate.transpose()?;
    // Standing by is being ready. For who looks: the readiness of a Pod is the gate's alone.
    let of_watches = metrics.clone();
    let ready = move || match of_watches.what_is_down() {
        down if down.is_empty() => Ok(()),
        down => Err(down.join("\n")),
    };
    let more = args.knocking.routes(&directory, &metrics);
    admin::serve(args.health_listen, registry, ready, more).await?;
    let arming = gate.map(|gate| {
        tokio::spawn(gate.keeper.run());
        tokio::spawn(gate.lookout.run());
        tokio::spawn(gate.arming.run(stop.clone()))
    });
    let term = |ending: watch::Receiver<bool>| {
        let loops = operators.loops(&metrics, &directory);
        async move {
            futures::future::join_all(loops.into_iter().map(|one| one.run(ending.clone()))).await;
        }
    };
    if args.scope.is_gate_only() {
        serving::stopped(stop).await;
    } else {
        candidate.lead(stop, term).await;
    }
    if let Some(arming) = arming {
        // Nothing but a few calls; a Pod has longer to end.
        let _ = tokio::time::timeout(Duration::from_secs(10), arming).await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// What a controller does for the gate.
struct ForTheGate {
    keeper: Keeper,
    arming: Arming,
    lookout: Lookout,
}

/// A client whose calls are counted, and take a token each.
async fn client(calls: &CallMetrics, bucket: &TokenBucket) -> anyhow::Result<Client> {
    let config = Config::infer()
        .await
        .context("cannot find a cluster: run in one, or set KUBECONFIG")?;
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(calls).with_layer(bucket).build())
}

impl Args {
    fn gate(
        &self,
        client: &Client,
        rulesets: Rulesets,
        registry: &mut Registry,
    ) -> anyhow::Result<ForTheGate> {
        let certs = certs::Metrics::register(registry);
        Ok(ForTheGate {
            keeper: self.keys.keeper(client, &self.namespace, certs)?,
            arming: self.arming(client, rulesets.clone(), ArmingMetrics::register(registry)),
            lookout: self.lookout.lookout(client, rulesets, registry),
        })
    }

    fn arming(&self, client: &Client, rulesets: Rulesets, metrics: ArmingMetrics) -> Arming {
        let replicas = self.keys.replicas(client, &self.namespace);
        let any_listens: AnyListens = Box::new(move || {
            let replicas = replicas.clone();
            Box::pin(async move { replicas.any_listens().await })
        });
        Arming {
            client: client.clone(),
            configuration: self.keys.webhook_configuration().to_owned(),
            webhook: manifests::names::VALIDATING_WEBHOOK.to_owned(),
            namespace: self.namespace.clone(),
            deployment: self.deployment.clone(),
            rulesets,
            look_every: self.canary_every,
            any_listens: self.disarm_without_replicas.then_some(any_listens),
            metrics,
        }
    }
}
