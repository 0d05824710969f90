//! `lockstep controller`: the loop, and the gate's keys. The one process with cluster credentials.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use certs::CertificateManager;
use controller::{
    BackendProbe, ClientMetrics, ControllerRegistry, CrdStatusReporter, FailurePolicyController,
    FailurePolicyMetrics, LeaderElectionMetrics, LeaderElector, Metrics, RateLimiter,
};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use shared_validation::ValidatorRegistry;
use tokio::sync::watch;

use crate::crds::CrdStatusReporterArgs;
use crate::keeping::CertArgs;
use crate::kinds::{KindArgs, OperatorArgs, Operators};
use crate::knocking::AdminArgs;
use crate::scope::InstallScopeArgs;
use crate::{admin, logging, policy, serving};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where /healthz, /readyz and /metrics are served, over HTTP.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_probe_bind_address: SocketAddr,
    /// The namespace of the installation.
    #[arg(long, env = "POD_NAMESPACE", default_value = manifests::names::NAMESPACE)]
    namespace: String,
    /// The Lease that the replicas elect their leader by.
    #[arg(long, default_value = manifests::names::LEASE)]
    leader_election_id: String,
    /// What this replica is called in the Lease; no other one may have the name.
    #[arg(long, env = "POD_NAME", default_value = "lockstep")]
    leader_election_identity: String,
    #[command(flatten)]
    certs: CertArgs,
    /// The Deployment of the gate: when it is gone or wants no replica, the last one disarms the gate.
    #[arg(long, default_value = manifests::names::APP)]
    webhook_deployment: String,
    /// How often a canary is sent through the API server, to see the gate refuse it.
    #[arg(long, default_value = "1m", value_parser = serving::duration)]
    webhook_probe_interval: Duration,
    /// Turn the failure policy back to `Ignore` when canaries fail and no replica of the gate takes
    /// connections. What is invalid can then be stored; without this, nothing can.
    #[arg(long)]
    fail_open_when_unavailable: bool,
    #[command(flatten)]
    crd_status: CrdStatusReporterArgs,
    #[command(flatten)]
    admin: AdminArgs,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    scope: InstallScopeArgs,
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
    let stop = serving::shutdown_signal()?;
    let mut registry = Registry::default();
    let calls = ClientMetrics::register(&mut registry);
    // The lease and the gate's keys never wait behind objects.
    let client = client(&calls, &RateLimiter::unlimited()).await?;
    let paced = self::client(&calls, &args.operators.api_calls()).await?;
    let metrics = Metrics::register(&mut registry);
    let kinds = args.kinds.choose()?;
    let rulesets = kinds.rulesets();
    let directory = ControllerRegistry::default();
    let of_policy = directory.clone();
    let look_at_all = move || of_policy.enqueue_all();
    let policy = args.policy.watch(&kinds.all, &mut registry, look_at_all);
    let candidate = LeaderElector::new(
        client.clone(),
        &args.namespace,
        &args.leader_election_id,
        &args.leader_election_identity,
        &LeaderElectionMetrics::register(&mut registry),
    );
    let tenure = candidate.leadership();
    let namespaces = args.scope.namespaces(kinds.cluster_scoped_kind())?;
    let operators =
        Operators::new(&paced, &args.operators, kinds, policy, tenure, namespaces).await?;
    // Its configuration is the cluster's.
    let has_gate = namespaces.is_empty();
    let gate = has_gate.then(|| args.webhook_tasks(&client, rulesets, &mut registry));
    let gate = gate.transpose()?;
    // Standing by is being ready. For who looks: the readiness of a Pod is the gate's alone.
    let of_watches = metrics.clone();
    let ready = move || match of_watches.disconnected_watches() {
        down if down.is_empty() => Ok(()),
        down => Err(down.join("\n")),
    };
    let more = args.admin.routes(&directory, &metrics);
    admin::serve(args.health_probe_bind_address, registry, ready, more).await?;
    let arming = gate.map(|gate| {
        tokio::spawn(gate.certificates.run());
        tokio::spawn(gate.crd_status.run());
        tokio::spawn(gate.failure_policy.run(stop.clone()))
    });
    let term = |ending: watch::Receiver<bool>| {
        let loops = operators.controllers(&metrics, &directory);
        async move {
            futures::future::join_all(loops.into_iter().map(|one| one.run(ending.clone()))).await;
        }
    };
    if args.scope.is_webhook_only() {
        serving::stopped(stop).await;
    } else {
        candidate.run(stop, term).await;
    }
    if let Some(arming) = arming {
        // Nothing but a few calls; a Pod has longer to end.
        let _ = tokio::time::timeout(Duration::from_secs(10), arming).await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// What a controller does for the gate.
struct WebhookTasks {
    certificates: CertificateManager,
    failure_policy: FailurePolicyController,
    crd_status: CrdStatusReporter,
}

/// A client whose calls are counted, and take a token each.
async fn client(calls: &ClientMetrics, bucket: &RateLimiter) -> anyhow::Result<Client> {
    let config = Config::infer()
        .await
        .context("cannot find a cluster: run in one, or set KUBECONFIG")?;
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(calls).with_layer(bucket).build())
}

impl Args {
    fn webhook_tasks(
        &self,
        client: &Client,
        rulesets: ValidatorRegistry,
        registry: &mut Registry,
    ) -> anyhow::Result<WebhookTasks> {
        let certs = certs::Metrics::register(registry);
        Ok(WebhookTasks {
            certificates: self.certs.manager(client, &self.namespace, certs)?,
            failure_policy: self.failure_policy(
                client,
                rulesets.clone(),
                FailurePolicyMetrics::register(registry),
            ),
            crd_status: self.crd_status.reporter(client, rulesets, registry),
        })
    }

    fn failure_policy(
        &self,
        client: &Client,
        rulesets: ValidatorRegistry,
        metrics: FailurePolicyMetrics,
    ) -> FailurePolicyController {
        let replicas = self.certs.replica_probe(client, &self.namespace);
        let any_listens: BackendProbe = Box::new(move || {
            let replicas = replicas.clone();
            Box::pin(async move { replicas.any_reachable().await })
        });
        FailurePolicyController {
            client: client.clone(),
            configuration: self.certs.webhook_configuration().to_owned(),
            webhook: manifests::names::VALIDATING_WEBHOOK.to_owned(),
            namespace: self.namespace.clone(),
            deployment: self.webhook_deployment.clone(),
            rulesets,
            probe_interval: self.webhook_probe_interval,
            backend_probe: self.fail_open_when_unavailable.then_some(any_listens),
            metrics,
        }
    }
}
