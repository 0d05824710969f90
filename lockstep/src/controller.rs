//! `lockstep controller`: runs the controllers and manages the webhook's certificates. It is the only process with
//! cluster credentials.

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
    /// Bind address of the HTTP server for /healthz, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_listen: SocketAddr,
    /// Namespace of the installation.
    #[arg(long, env = "POD_NAMESPACE", default_value = manifests::names::NAMESPACE)]
    namespace: String,
    /// Name of the Lease that is used for leader election.
    #[arg(long, default_value = manifests::names::LEASE)]
    lease: String,
    /// Identity of this replica in the Lease. It must be unique among the replicas.
    #[arg(long, env = "POD_NAME", default_value = "lockstep")]
    identity: String,
    #[command(flatten)]
    keys: KeyArgs,
    /// Deployment of the webhook. If it is deleted or scaled to zero when the controller stops, `failurePolicy` is
    /// set back to `Ignore`.
    #[arg(long, default_value = manifests::names::APP)]
    deployment: String,
    /// Interval of admission probes: dry-run requests through the API server that the webhook must deny.
    #[arg(long, default_value = "1m", value_parser = serving::duration)]
    canary_every: Duration,
    /// Set `failurePolicy` back to `Ignore` if admission probes fail and no webhook replica accepts connections.
    /// Invalid objects can then be stored. Without this flag, no object can be stored in that case.
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
    // kube and the AWS SDK both use rustls. One process-wide TLS provider serves both.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("a TLS provider is already installed"))?;
    // Spawned onto the worker threads, which also poll the connections that it waits for. On a thread of its own,
    // each response would have to wake that thread.
    serving::block_on(async { tokio::spawn(serve(args)).await? })
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let stop = serving::stop_signal()?;
    let mut registry = Registry::default();
    let calls = CallMetrics::register(&mut registry);
    // Requests for the Lease and the certificates never wait for the rate limit of reconciliations.
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
    // Webhook configurations are cluster-scoped, so there is no webhook if only some namespaces are watched.
    let has_gate = namespaces.is_empty();
    let gate = has_gate.then(|| args.gate(&client, rulesets, &mut registry));
    let gate = gate.transpose()?;
    // A replica on standby is ready. This endpoint is for diagnosis: the readiness of the Pod depends only on the
    // webhook.
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
        // Only a few API calls; the termination grace period of a Pod is longer.
        let _ = tokio::time::timeout(Duration::from_secs(10), arming).await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// Background tasks that the controller process runs for the webhook.
struct ForTheGate {
    keeper: Keeper,
    arming: Arming,
    lookout: Lookout,
}

/// Returns a client that counts its calls and takes one token from the bucket for each.
async fn client(calls: &CallMetrics, bucket: &TokenBucket) -> anyhow::Result<Client> {
    let config = Config::infer()
        .await
        .context("cannot load the cluster configuration; run inside a cluster or set KUBECONFIG")?;
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
