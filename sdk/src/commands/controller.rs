//! `lockstep controller`: runs the controllers and manages the webhook's certificates. It is the only process with
//! cluster credentials.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::ArgMatches;
use kube::client::ClientBuilder;
use kube::{Client, Config};
use lockstep_certs::CertificateManager;
use lockstep_controller::{
    ClientMetrics, ControllerRegistry, LeaderElectionMetrics, Metrics, RateLimiter, RequestLimits,
    SecretAccess, Watches,
};
use lockstep_manifests::names::Names;
use lockstep_shared_validation::ValidatorRegistry;
use lockstep_webhook_lifecycle::{
    BackendProbe, CrdStatusReporter, FailurePolicyController, FailurePolicyMetrics,
};
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use crate::admission_checks;
use crate::args::cert::CertArgs;
use crate::args::crd_status::CrdStatusReporterArgs;
use crate::args::kinds::KindArgs;
use crate::args::metrics::SecureMetricsArgs;
use crate::args::policy;
use crate::args::reconciliation::ReconciliationArgs;
use crate::args::scope::InstallScopeArgs;
use crate::args::shards::shard_count;
use crate::election::Election;
use crate::environment::Environment;
use crate::installation::installed_names::InstalledNames;
use crate::logging;
use crate::operator::context::{OperatorContext, OperatorMetrics};
use crate::registry::Operators;
use crate::server::admin::AdminArgs;
use crate::server::{health, runtime};

/// Headings in the help. Each group of options has one of its own, because a heading applies to all options that
/// follow.
const LEADER_ELECTION: &str = "Leader election";
const FAILURE_POLICY: &str = "Failure policy";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bind address of the HTTP server for /healthz, /readyz and, without `--metrics-secure`, /metrics.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_probe_bind_address: SocketAddr,
    /// Namespace of the installation.
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
    /// Name of the service account. Default: that of the manifests.
    #[arg(long, env = "POD_SERVICE_ACCOUNT", hide = true)]
    service_account: Option<String>,
    /// Unix socket on which the webhook in the same Pod asks for checks that need the cluster. Default: none are served.
    #[arg(long, value_name = "FILE")]
    admission_check_socket: Option<PathBuf>,
    /// Name of the Lease that is used for leader election.
    #[arg(long, help_heading = LEADER_ELECTION)]
    leader_election_id: String,
    /// Identity of this replica in the Lease. It must be unique among the replicas.
    #[arg(long, help_heading = LEADER_ELECTION, env = "POD_NAME")]
    leader_election_identity: String,
    /// Distribute the objects over the replicas by this number of shards, about three times the number of replicas. Each
    /// shard has a Lease, whose holder reconciles its objects. Default: the leader reconciles all objects.
    #[arg(long, help_heading = LEADER_ELECTION, value_name = "NUMBER", value_parser = shard_count)]
    shards: Option<NonZeroU32>,
    #[command(flatten)]
    certs: CertArgs,
    /// Deployment of the webhook. If it is deleted or scaled to zero when the controller stops, `failurePolicy` is
    /// set back to `Ignore`.
    #[arg(long, help_heading = FAILURE_POLICY)]
    webhook_deployment: String,
    /// Interval of admission probes: dry-run requests through the API server that the webhook must deny.
    #[arg(long, help_heading = FAILURE_POLICY, default_value = "1m", value_parser = runtime::duration)]
    webhook_probe_interval: Duration,
    /// Set `failurePolicy` back to `Ignore` if admission probes fail and no webhook replica accepts connections.
    /// Invalid objects can then be stored. Without this flag, no object can be stored in that case.
    #[arg(long, help_heading = FAILURE_POLICY)]
    fail_open_when_unavailable: bool,
    #[command(flatten)]
    crd_status: CrdStatusReporterArgs,
    #[command(flatten)]
    secure_metrics: SecureMetricsArgs,
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
    let server = |reconciliations| serve(args, matches, environment, reconciliations);
    runtime::block_on_with_reconciliations(server)
}

async fn serve(
    args: Args,
    matches: ArgMatches,
    environment: Environment,
    reconciliations: Handle,
) -> anyhow::Result<()> {
    let stop = runtime::shutdown_signal()?;
    let mut registry = Registry::default();
    let calls = ClientMetrics::register(&mut registry);
    // Requests for the Lease and the certificates never wait for the rate limit of reconciliations.
    let mut config = Config::infer()
        .await
        .context("cannot load the cluster configuration; run inside a cluster or set KUBECONFIG")?;
    let unlimited = RateLimiter::unlimited();
    let client = client(config.clone(), &calls, &unlimited)?;
    let rate = args.reconciliation.api_calls();
    let rate_limited = {
        // The client has a task, which runs beside those that use it.
        let _runtime = reconciliations.enter();
        crate::commands::controller::client(config.clone(), &calls, &rate)?
    };
    let metrics = Metrics::register(&mut registry);
    let kinds = args.kinds.choose(environment.registry())?;
    let validators = kinds.validators();
    let directory = ControllerRegistry::default();
    let of_policy = directory.clone();
    let enqueue_all = move || of_policy.enqueue_all();
    let extensions = environment.registry();
    extensions.watch_extensions(&mut registry, policy::POLL_INTERVAL, enqueue_all.clone());
    let policy = args.policy.watch(&kinds.all, &mut registry, enqueue_all);
    let election = args.election(&client, &LeaderElectionMetrics::register(&mut registry));
    let namespaces = args.scope.namespaces(kinds.cluster_scoped_kind())?;
    let of_operators = OperatorMetrics::new(registry);
    let context = OperatorContext {
        program: environment.name().to_owned(),
        client: rate_limited,
        leadership: election.leadership(),
        namespace: args.namespace.clone(),
        namespaces: namespaces.to_vec(),
        secret_access: args.secret_access(environment.names(), namespaces),
        installed_kinds: kinds.api_resources(),
        controllers: directory.clone(),
        extension: None,
        metrics: of_operators.clone(),
    };
    let set_up = Operators::new(
        context,
        !args.scope.is_webhook_only(),
        &args.reconciliation,
        &matches,
        &kinds,
        policy,
    );
    let mut operators = tokio::select! {
        operators = set_up => operators?,
        // An operator may still wait for the API server or for an external system.
        () = runtime::stopped(stop.clone()) => {
            tracing::info!("stopped before the operators were set up");
            return Ok(());
        }
    };
    if let Some(socket) = &args.admission_check_socket {
        admission_checks::serve(socket, operators.take_checks()).await?;
    }
    let mut registry = of_operators.take();
    let names = environment.names();
    let has_webhook = args.scope.has_webhook();
    let webhook_tasks = has_webhook
        .then(|| args.webhook_tasks(&client, validators, &names, &metrics, &mut registry));
    let webhook_tasks = webhook_tasks.transpose()?;
    // A replica on standby is ready. This endpoint is for diagnosis: the readiness of the Pod depends only on the
    // webhook.
    let of_watches = metrics.clone();
    let ready = move || match of_watches.disconnected_watches() {
        down if down.is_empty() => Ok(()),
        down => Err(down.join("\n")),
    };
    let more = args.admin.routes(&directory, &metrics);
    // The reviews of clients are not repeated: the clients repeat their requests.
    config.default_retry = false;
    let reviews = crate::commands::controller::client(config, &calls, &unlimited)?;
    let certificates = args.certs.directory();
    let served = args.secure_metrics.serve(registry, certificates, &reviews);
    health::serve(args.health_probe_bind_address, served.await?, ready, more).await?;
    let failure_policy = webhook_tasks.map(|webhook_tasks| {
        tokio::spawn(webhook_tasks.certificates.run());
        tokio::spawn(webhook_tasks.crd_status.run());
        tokio::spawn(webhook_tasks.failure_policy.run(stop.clone()))
    });
    if args.scope.is_webhook_only() {
        runtime::stopped(stop).await;
    } else {
        let elected = async move { election.run(stop, &operators, &metrics, &directory).await };
        reconciliations.spawn(elected).await?;
    }
    if let Some(failure_policy) = failure_policy {
        // Only a few API calls; the termination grace period of a Pod is longer.
        let _ = tokio::time::timeout(Duration::from_secs(10), failure_policy).await;
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

/// Returns a client that limits and counts its calls, and takes one token from the bucket for each.
fn client(config: Config, calls: &ClientMetrics, bucket: &RateLimiter) -> anyhow::Result<Client> {
    let host = config.cluster_url.authority().map(ToString::to_string);
    let calls = calls.with_host(&host.unwrap_or_default());
    let builder = ClientBuilder::try_from(config)?;
    let builder = builder
        .with_layer(&RequestLimits::default())
        .with_layer(&calls);
    Ok(builder.with_layer(bucket).build())
}

impl Args {
    /// Returns the names by which an administrator grants the rights on Secrets.
    fn secret_access(&self, names: Names, namespaces: &[String]) -> SecretAccess {
        if !namespaces.is_empty() {
            return SecretAccess::ByRole;
        }
        let installed = InstalledNames::with_lease(&self.leader_election_id, names);
        installed.secret_access(&self.namespace, self.service_account.as_deref())
    }

    /// Returns the election in which this replica takes part.
    fn election(&self, client: &Client, metrics: &LeaderElectionMetrics) -> Election {
        Election::new(
            client,
            &self.namespace,
            &self.leader_election_id,
            &self.leader_election_identity,
            self.shards,
            metrics,
        )
    }

    fn webhook_tasks(
        &self,
        client: &Client,
        validators: ValidatorRegistry,
        names: &Names,
        metrics: &Metrics,
        registry: &mut Registry,
    ) -> anyhow::Result<WebhookTasks> {
        let certs = lockstep_certs::Metrics::register(registry);
        let watches = metrics.watches().clone();
        Ok(WebhookTasks {
            certificates: self.certs.manager(
                client,
                &names.program,
                &self.namespace,
                certs,
                watches.clone(),
            )?,
            failure_policy: self.failure_policy(
                client,
                validators.clone(),
                names,
                FailurePolicyMetrics::register(registry),
                watches.clone(),
            ),
            crd_status: self
                .crd_status
                .reporter(client, validators, registry, watches),
        })
    }

    fn failure_policy(
        &self,
        client: &Client,
        validators: ValidatorRegistry,
        names: &Names,
        metrics: FailurePolicyMetrics,
        watches: Watches,
    ) -> FailurePolicyController {
        let replicas = self.certs.replica_probe(client, &self.namespace);
        let any_listens: BackendProbe = Box::new(move || {
            let replicas = replicas.clone();
            Box::pin(async move { replicas.any_reachable().await })
        });
        FailurePolicyController {
            client: client.clone(),
            configuration: self.certs.webhook_configuration().to_owned(),
            field_manager: format!("{}-failure-policy", names.program),
            webhook: names.validating_webhook.clone(),
            service: self.certs.service(&self.namespace),
            namespace: self.namespace.clone(),
            deployment: self.webhook_deployment.clone(),
            validators,
            probe_interval: self.webhook_probe_interval,
            backend_probe: self.fail_open_when_unavailable.then_some(any_listens),
            metrics,
            watches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_is_below_the_heading_of_its_subject() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("controller"));
        let below = |heading: Option<&str>| -> Vec<&str> {
            let options = command.get_arguments();
            let options = options.filter(|option| option.get_help_heading() == heading);
            options.filter_map(clap::Arg::get_long).collect()
        };
        assert_eq!(
            below(None),
            [
                "health-probe-bind-address",
                "namespace",
                "service-account",
                "admission-check-socket"
            ]
        );
        let expected = ["leader-election-id", "leader-election-identity", "shards"];
        assert_eq!(below(Some(LEADER_ELECTION)), expected);
        let expected = [
            "webhook-deployment",
            "webhook-probe-interval",
            "fail-open-when-unavailable",
        ];
        assert_eq!(below(Some(FAILURE_POLICY)), expected);
        let certificates = below(Some("TLS certificates"));
        let last = certificates.last();
        assert_eq!(
            (certificates.len(), last),
            (12, Some(&"cert-check-interval"))
        );
        let expected = ["crd-status-file", "crd-propagation-delay"];
        assert_eq!(below(Some("CRD status")), expected);
        assert_eq!(below(Some("Administration")), ["admin-token-file"]);
        let expected = ["kinds", "watch-namespaces", "webhook-only", "no-webhook"];
        assert_eq!(below(Some("Scope")), expected);
        assert_eq!(below(Some("Policy")), ["policy"]);
        let reconciliation = below(Some("Reconciliation"));
        assert!(
            reconciliation.contains(&"max-concurrent-reconciles"),
            "{reconciliation:?}"
        );
    }
}
