//! `CloudDatabase`: AWS RDS instances.

mod iam_policy;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use lockstep_cloud_database_controller::{
    AWS_REQUESTS, AWS_REQUESTS_HELP, AwsRequests, CERTIFICATE_EXPIRY, CERTIFICATE_EXPIRY_HELP,
    CertificateExpiry, CloudDatabaseReconciler, OFFERS_READ, OFFERS_READ_HELP, OFFERS_REFRESHES,
    OFFERS_REFRESHES_HELP, OfferMetrics, OfferRefresh, RdsClient, RdsConfig, SourcePolicy,
    UnownedSources,
};
use lockstep_controller::{NamedConfigMap, RateLimiter};
#[cfg(feature = "dev")]
use lockstep_envtest::Moto;
#[cfg(feature = "dev")]
use lockstep_sdk::{DevService, RunningService};
use lockstep_sdk::{Operator, OperatorContext, duration};

use crate::rds;
use crate::rds::catalogue_files;

/// Argument with the folders of catalogues.
const CATALOGUES: &str = "--rds-catalogues";

/// Name of the `ConfigMap` with the catalogue of the account and region.
const CATALOGUE_CONFIG_MAP: &str = "lockstep-rds-catalogue";

/// Options of the operator.
#[derive(clap::Args)]
#[command(next_help_heading = "CloudDatabase")]
struct CloudDatabaseArgs {
    /// Interval at which RDS is polled while an instance is changing.
    #[arg(long = "rds-poll-interval", default_value = "30s", value_parser = duration)]
    poll: Duration,
    /// Interval at which RDS is polled while an instance is in its desired state.
    #[arg(long = "rds-resync-period", default_value = "10m", value_parser = duration)]
    resync: Duration,
    /// Time that RDS must report an instance as not found before it counts as missing, or as deleted if its object
    /// is being deleted.
    #[arg(long = "rds-not-found-grace-period", default_value = "2m", value_parser = duration)]
    not_found_grace_period: Duration,
    /// Time that calls to RDS must fail, for example because they are throttled, before an instance that served clients
    /// counts as not ready.
    #[arg(long = "rds-unavailable-grace-period", default_value = "10m", value_parser = duration)]
    unavailable_grace_period: Duration,
    /// Maximum average number of calls to RDS per second. AWS throttles an account that sends too many.
    #[arg(long = "rds-qps", default_value = "10")]
    rds_rate: NonZeroU32,
    /// Maximum number of calls to RDS in a burst.
    #[arg(long = "rds-burst", default_value = "20")]
    rds_burst: NonZeroU32,
    /// Interval at which the versions and classes that RDS offers are read, for the engines of existing objects. They are kept
    /// in the `ConfigMap` `lockstep-rds-catalogue`, by which the webhook denies what is not offered. `0s` disables it.
    #[arg(long = "rds-catalogue-refresh-interval", default_value = "24h", value_parser = duration)]
    catalogue_refresh_interval: Duration,
    /// Name of this cluster, with which RDS instances are tagged. Set it if several clusters share an AWS account
    /// and region. Without it, an instance of another cluster counts as an instance of this cluster if its object
    /// has the same namespace and name.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// Snapshots and instances without tags of an object of this cluster, as sources of data: `allow` lets the objects of every
    /// namespace restore, replicate and adopt them, and `deny` none.
    #[arg(long, value_enum, default_value = "allow")]
    unowned_sources: Unowned,
    /// File with the CA certificates of RDS in PEM format, which AWS publishes. It is copied into connection Secrets, under
    /// the key `ca.crt`. Without it, they have no such key. The file is read once.
    #[arg(long, value_name = "FILE")]
    rds_ca_bundle: Option<PathBuf>,
}

/// Values of `--unowned-sources`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Unowned {
    Allow,
    Deny,
}

impl From<Unowned> for UnownedSources {
    fn from(unowned: Unowned) -> Self {
        match unowned {
            Unowned::Allow => Self::Allow,
            Unowned::Deny => Self::Deny,
        }
    }
}

/// Access to RDS, shared by all leadership terms.
pub(crate) struct Rds {
    client: RdsClient,
    config: RdsConfig,
    ca_bundle: Option<Arc<str>>,
    certificate_expiry: CertificateExpiry,
    source_policy: SourcePolicy,
    offers: Option<OfferRefresh>,
}

/// Returns the operator.
pub(crate) fn operator() -> Operator<Rds> {
    let operator = Operator::with_args(connect)
        .kind(reconciler)
        .rbac_rules(lockstep_cloud_database_controller::rbac_rules())
        .own_namespace_rules(NamedConfigMap::rbac_rules(CATALOGUE_CONFIG_MAP))
        .ruleset_extension(catalogue_files::extension)
        .config_map_arg(CATALOGUE_CONFIG_MAP, CATALOGUES)
        .subcommand(rds::run)
        .subcommand(iam_policy::run);
    #[cfg(feature = "dev")]
    let operator = operator.dev_service(moto());
    operator
}

async fn connect(args: CloudDatabaseArgs, context: OperatorContext) -> anyhow::Result<Rds> {
    let ca_bundle = args.rds_ca_bundle.as_deref().map(read_ca_bundle);
    let ca_bundle = ca_bundle.transpose()?;
    let calls = RateLimiter::new(args.rds_rate, args.rds_burst);
    let requests = context.register_metric(AWS_REQUESTS, AWS_REQUESTS_HELP, AwsRequests::default());
    let certificate_expiry = context.register_metric(
        CERTIFICATE_EXPIRY,
        CERTIFICATE_EXPIRY_HELP,
        CertificateExpiry::default(),
    );
    let offers = OfferMetrics::default();
    context.register_metric(OFFERS_READ, OFFERS_READ_HELP, offers.read.clone());
    context.register_metric(
        OFFERS_REFRESHES,
        OFFERS_REFRESHES_HELP,
        offers.refreshes.clone(),
    );
    let leadership = context.leadership.clone();
    let client = RdsClient::from_environment(leadership, calls, args.cluster_name, requests);
    let client = client.await;
    let interval = args.catalogue_refresh_interval;
    let offers = (!interval.is_zero()).then(|| {
        OfferRefresh::new(
            client.clone(),
            context.client.clone(),
            &context.namespace,
            CATALOGUE_CONFIG_MAP,
            interval,
            offers,
        )
    });
    Ok(Rds {
        client,
        source_policy: SourcePolicy {
            unowned: args.unowned_sources.into(),
            // With Roles instead of ClusterRoles, it may not.
            reads_namespaces: context.namespaces.is_empty(),
        },
        offers,
        ca_bundle,
        certificate_expiry,
        config: RdsConfig {
            poll_interval: args.poll,
            resync_period: args.resync,
            not_found_grace_period: args.not_found_grace_period,
            unavailable_grace_period: args.unavailable_grace_period,
        },
    })
}

/// Reads a file with certificates.
fn read_ca_bundle(path: &Path) -> anyhow::Result<Arc<str>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    anyhow::ensure!(
        text.contains("-----BEGIN CERTIFICATE-----"),
        "{shown} contains no certificate in PEM format"
    );
    Ok(text.into())
}

fn reconciler(rds: &Rds, context: &OperatorContext) -> CloudDatabaseReconciler {
    CloudDatabaseReconciler::new(
        context.client.clone(),
        rds.client.clone(),
        rds.config,
        rds.certificate_expiry.clone(),
    )
    .with_ca_bundle(rds.ca_bundle.clone())
    .with_source_policy(rds.source_policy)
    .with_offer_refresh(rds.offers.clone())
}

/// Returns moto, which simulates AWS in `dev`.
#[cfg(feature = "dev")]
fn moto() -> DevService {
    // moto creates an instance immediately.
    DevService::new("moto (AWS mock)", start_moto)
        .installed_by(|| Ok(lockstep_envtest::install_moto().map(drop)?))
        .controller_arg("--rds-poll-interval=500ms")
        // moto does not list engine versions.
        .controller_arg("--rds-catalogue-refresh-interval=0s")
}

#[cfg(feature = "dev")]
async fn start_moto(logs: PathBuf) -> anyhow::Result<RunningService> {
    let moto = Moto::start_as(&logs, Moto::ACCOUNT).await?;
    Ok(RunningService {
        environment: moto.environment(),
        guard: Box::new(moto),
    })
}
