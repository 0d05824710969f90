//! `lockstep controller`: runs the controllers and manages the webhook's certificates. It is the only process with
//! cluster credentials.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use certs::CertificateManager;
use clap::ArgMatches;
use controller::{
    ClientMetrics, ControllerRegistry, LeaderElectionMetrics, LeaderElector, Metrics, RateLimiter,
};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use shared_validation::ValidatorRegistry;
use tokio::sync::watch;
use webhook_lifecycle::{
    BackendProbe, CrdStatusReporter, FailurePolicyController, FailurePolicyMetrics,
};

use crate::args::cert::CertArgs;
use crate::args::crd_status::CrdStatusReporterArgs;
use crate::args::kinds::KindArgs;
use crate::args::policy;
use crate::args::reconciliation::ReconciliationArgs;
use crate::args::scope::InstallScopeArgs;
use crate::environment::Environment;
use crate::logging;
use crate::registry::Operators;
use crate::server::admin::AdminArgs;
use crate::server::{health, runtime};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bind address of the HTTP server for /healthz, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_probe_bind_address: SocketAddr,
    /// Namespace of the installation.
    #[arg(long, env = "POD_NAMESPACE", default_value = manifests::names::NAMESPACE)]
    namespace: String,
    /// Name of the Lease that is used for leader election.
    #[arg(long, default_value = manifests::names::LEASE)]
    leader_election_id: String,
    /// Identity of this replica in the Lease. It must be unique among the replicas.
    #[arg(long, env = "POD_NAME", default_value = "lockstep")]
    leader_election_identity: String,
    #[command(flatten)]
    certs: CertArgs,
    /// Deployment of the webhook. If it is deleted or scaled to zero when the controller stops, `failurePolicy` is
    /// set back to `Ignore`.
    #[arg(long, default_value = manifests::names::APP)]
    webhook_deployment: String,
    /// Interval of admission probes: dry-run requests through the API server that the webhook must deny.
    #[arg(long, default_value = "1m", value_parser = runtime::duration)]
    webhook_probe_interval: Duration,
    /// Set `failurePolicy` back to `Ignore` if admission probes fail and no webhook replica accepts connections.
    /// Invalid objects can then be stored. Without this flag, no object can be stored in that case.
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
    reconciliation: ReconciliationArgs,
    #[command(flatten)]
    policy: policy::PolicyArgs,
}

/// Runs the controllers. `matches` contains the arguments of the operators.
pub(crate) fn run(args: Args, matches: ArgMatches, environment: Environment) -> anyhow::Result<()> {
    logging::start(None);
    // kube and the AWS SDK both use rustls. One process-wide TLS provider serves both.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("a TLS provider is already installed"))?;
    // Spawned onto the worker threads, which also poll the connections that it waits for. On a thread of its own,
    // each response would have to wake that thread.
    runtime::block_on(async { tokio::spawn(serve(args, matches, environment)).await? })
}

async fn serve(args: Args, matches: ArgMatches, environment: Environment) -> anyhow::Result<()> {
    let stop = runtime::shutdown_signal()?;
    let mut registry = Registry::default();
    let calls = ClientMetrics::register(&mut registry);
    // Requests for the Lease and the certificates never wait for the rate limit of reconciliations.
    let client = client(&calls, &RateLimiter::unlimited()).await?;
    let paced =
        crate::commands::controller::client(&calls, &args.reconciliation.api_calls()).await?;
    let metrics = Metrics::register(&mut registry);
    let kinds = args.kinds.choose(environment.registry())?;
    let validators = kinds.validators();
    let directory = ControllerRegistry::default();
    let of_policy = directory.clone();
    let look_at_all = move || of_policy.enqueue_all();
    let policy = args.policy.watch(&kinds.all, &mut registry, look_at_all);
    let elector = LeaderElector::new(
        client.clone(),
        &args.namespace,
        &args.leader_election_id,
        &args.leader_election_identity,
        &LeaderElectionMetrics::register(&mut registry),
    );
    let leadership = elector.leadership();
    let namespaces = args.scope.namespaces(kinds.cluster_scoped_kind())?;
    let operators = Operators::new(
        &paced,
        &args.reconciliation,
        &matches,
        &kinds,
        policy,
        leadership,
        namespaces,
    )
    .await?;
    // Webhook configurations are cluster-scoped, so there is no webhook if only some namespaces are watched.
    let has_gate = namespaces.is_empty();
    let gate = has_gate.then(|| args.webhook_tasks(&client, validators, &mut registry));
    let gate = gate.transpose()?;
    // A replica on standby is ready. This endpoint is for diagnosis: the readiness of the Pod depends only on the
    // webhook.
    let of_watches = metrics.clone();
    let ready = move || match of_watches.disconnected_watches() {
        down if down.is_empty() => Ok(()),
        down => Err(down.join("\n")),
    };
    let more = args.admin.routes(&directory, &metrics);
    health::serve(args.health_probe_bind_address, registry, ready, more).await?;
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
        runtime::stopped(stop).await;
    } else {
        elector.run(stop, term).await;
    }
    if let Some(arming) = arming {
        // Only a few API calls; the termination grace period of a Pod is longer.
        let _ = tokio::time::timeout(Duration::from_secs(10), arming).await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// Background tasks that the controller process runs for the webhook.
struct WebhookTasks {
    certificates: CertificateManager,
    failure_policy: FailurePolicyController,
    crd_status: CrdStatusReporter,
}

/// Returns a client that counts its calls and takes one token from the bucket for each.
async fn client(calls: &ClientMetrics, bucket: &RateLimiter) -> anyhow::Result<Client> {
    let config = Config::infer()
        .await
        .context("cannot load the cluster configuration; run inside a cluster or set KUBECONFIG")?;
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(calls).with_layer(bucket).build())
}

impl Args {
    fn webhook_tasks(
        &self,
        client: &Client,
        validators: ValidatorRegistry,
        registry: &mut Registry,
    ) -> anyhow::Result<WebhookTasks> {
        let certs = certs::Metrics::register(registry);
        Ok(WebhookTasks {
            certificates: self.certs.manager(client, &self.namespace, certs)?,
            failure_policy: self.failure_policy(
                client,
                validators.clone(),
                FailurePolicyMetrics::register(registry),
            ),
            crd_status: self.crd_status.reporter(client, validators, registry),
        })
    }

    fn failure_policy(
        &self,
        client: &Client,
        validators: ValidatorRegistry,
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
            validators,
            probe_interval: self.webhook_probe_interval,
            backend_probe: self.fail_open_when_unavailable.then_some(any_listens),
            metrics,
        }
    }
}
