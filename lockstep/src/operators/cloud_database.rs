//! `CloudDatabase`: AWS RDS instances.

#[cfg(feature = "dev")]
mod dev;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use lockstep_cloud_database_cli::{catalogue_files, iam_policy, rds};
use lockstep_cloud_database_controller::{
    ALLOWED_SOURCES, AWS_REQUESTS, AWS_REQUESTS_HELP, AccessCheck, AwsRequests, CERTIFICATE_EXPIRY,
    CERTIFICATE_EXPIRY_HELP, CertificateExpiry, CloudDatabaseReconciler, EventsQueue,
    NamespaceSources, OFFERS_READ, OFFERS_READ_HELP, OFFERS_REFRESHES, OFFERS_REFRESHES_HELP,
    OfferMetrics, OfferRefresh, QueueAddress, RDS_EVENTS, RDS_EVENTS_HELP, RDS_EVENTS_LAST,
    RDS_EVENTS_LAST_HELP, RDS_EVENTS_OLDEST_AGE, RDS_EVENTS_OLDEST_AGE_HELP,
    RDS_EVENTS_QUEUE_ERRORS, RDS_EVENTS_QUEUE_ERRORS_HELP, RDS_EVENTS_RECEIVING,
    RDS_EVENTS_RECEIVING_HELP, REGION, ROLE_ARN, RateLimits, RdsClients, RdsConfig, RdsEvents,
    RdsEventsMetrics, RdsEventsReceiver, SourcePolicy, UnownedSources,
};
use lockstep_controller::NamedConfigMap;
use lockstep_sdk::{
    AdmissionCheck, AdmissionCheckRequest, AdmissionCheckResult, Audience, Finding, Operator,
    OperatorContext, duration,
};

/// Argument with the folders of catalogues.
const CATALOGUES: &str = "--rds-catalogues";

/// Name of the `ConfigMap` with the catalogue of the account and region.
const CATALOGUE_CONFIG_MAP: &str = "lockstep-rds-catalogue";

/// Name of the `ConfigMap` that records which Namespace uses which external ID.
const EXTERNAL_IDS_CONFIG_MAP: &str = "lockstep-external-ids";

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
    /// URL or ARN of an SQS queue with the events of RDS, so that changes by other clients are noticed within seconds. Its
    /// region and account need not be those of the instances. Default: none.
    #[arg(long, value_name = "URL|ARN")]
    rds_events_queue: Option<QueueAddress>,
    /// Interval at which RDS is polled while an instance is in its desired state and events are received. If the queue fails,
    /// `--rds-resync-period` applies.
    #[arg(long = "rds-resync-period-with-events", default_value = "1h", value_parser = duration)]
    resync_with_events: Duration,
    /// Time that RDS must report an instance as not found before it counts as missing, or as deleted if its object
    /// is being deleted.
    #[arg(long = "rds-not-found-grace-period", default_value = "2m", value_parser = duration)]
    not_found_grace_period: Duration,
    /// Time that calls to RDS must fail, for example because they are throttled, before an instance that served clients
    /// counts as not ready.
    #[arg(long = "rds-unavailable-grace-period", default_value = "10m", value_parser = duration)]
    unavailable_grace_period: Duration,
    /// Maximum average number of calls to RDS per second, in each account and region. AWS throttles those that send too many.
    #[arg(long = "rds-qps", default_value = "10")]
    rds_rate: NonZeroU32,
    /// Maximum number of calls to RDS in a burst, in each account and region.
    #[arg(long = "rds-burst", default_value = "20")]
    rds_burst: NonZeroU32,
    /// Interval at which the versions and classes that RDS offers are read, for the engines of existing objects. They are kept
    /// in the `ConfigMap` `lockstep-rds-catalogue`, by which the webhook denies what is not offered. A catalogue that is older
    /// than three days only warns, so that a longer interval makes it warn in between. `0s` disables it.
    #[arg(long = "rds-catalogue-refresh-interval", default_value = "24h", value_parser = duration)]
    catalogue_refresh_interval: Duration,
    /// AWS regions that the objects of all Namespaces may choose by an annotation, besides those that their Namespace allows,
    /// separated by commas. Default: that of the controller.
    #[arg(long, value_name = "REGIONS", value_delimiter = ',')]
    rds_regions: Vec<String>,
    /// External ID with which the roles of a Namespace are assumed: its UID, or with `annotation` the value of its annotation
    /// `database.example.com/external-id`, if it has one, which stays the same when the Namespace is created again.
    #[arg(long, value_enum, default_value = "uid")]
    external_ids: ExternalIds,
    /// Name of this cluster, with which RDS instances are tagged. Set it if several clusters share an AWS account
    /// and region. Without it, an instance of another cluster counts as an instance of this cluster if its object
    /// has the same namespace and name, and may be used as a source of data in the namespace of that name if that cluster has no
    /// name either.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// Snapshots and instances without tags of an object, as sources of data: with `deny`, objects restore, replicate and adopt
    /// those that an administrator has listed for their namespace, in its annotation `database.example.com/allowed-sources`.
    /// `allow` lets the objects of every namespace use all of them.
    #[arg(long, value_enum, default_value = "deny")]
    unowned_sources: Unowned,
    /// Snapshots and instances without tags of an object, or with those of another cluster, that the objects of a namespace may
    /// restore, replicate and adopt: identifiers, resource IDs or ARNs, or patterns with `*`, separated by commas. May be
    /// repeated. For a controller that is limited to some namespaces, which cannot read their annotations.
    #[arg(long, value_name = "NAMESPACE=SOURCES")]
    allowed_sources: Vec<NamespaceSources>,
    /// File with the CA certificates of RDS in PEM format, which AWS publishes. It is copied into connection Secrets, under
    /// the key `ca.crt`. Without it, they have no such key. The file is read once.
    #[arg(long, value_name = "FILE")]
    rds_ca_bundle: Option<PathBuf>,
}

/// Values of `--external-ids`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExternalIds {
    Uid,
    Annotation,
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
    clients: RdsClients,
    config: RdsConfig,
    ca_bundle: Option<Arc<str>>,
    certificate_expiry: CertificateExpiry,
    source_policy: SourcePolicy,
    offers: Option<OfferRefresh>,
    events: RdsEvents,
    events_queue: Option<EventsQueue>,
    events_metrics: RdsEventsMetrics,
}

/// Returns the operator.
pub(crate) fn operator() -> Operator<Rds> {
    let operator = Operator::with_args(connect)
        .kind(Audience::Tenants, reconciler)
        .rbac_rules(lockstep_cloud_database_controller::rbac_rules())
        .own_namespace_rules(NamedConfigMap::rbac_rules(CATALOGUE_CONFIG_MAP))
        .own_namespace_rules(NamedConfigMap::rbac_rules(EXTERNAL_IDS_CONFIG_MAP))
        .ruleset_extension(catalogue_files::extension)
        .config_map_arg(CATALOGUE_CONFIG_MAP, CATALOGUES)
        // AWS region, role or endpoint, in the environment variables of the AWS tools.
        .environment_config_map("lockstep-aws")
        .subcommand(rds::run)
        .leader_task(events_receiver)
        .admission_check(|_, _| true, annotations_check)
        .checked_annotations(&[REGION, ROLE_ARN])
        .admission_check_rules(lockstep_cloud_database_controller::admission_check_rules())
        .subcommand(iam_policy::run);
    #[cfg(feature = "dev")]
    let operator = operator.dev_service(dev::service());
    operator
}

async fn connect(args: CloudDatabaseArgs, context: OperatorContext) -> anyhow::Result<Rds> {
    let source_policy = source_policy(args.unowned_sources, args.allowed_sources, &context)?;
    let ca_bundle = args.rds_ca_bundle.as_deref().map(read_ca_bundle);
    let ca_bundle = ca_bundle.transpose()?;
    let limits = RateLimits::new(args.rds_rate, args.rds_burst);
    let requests = context.register_metric(AWS_REQUESTS, AWS_REQUESTS_HELP, AwsRequests::default());
    let certificate_expiry = context.register_metric(
        CERTIFICATE_EXPIRY,
        CERTIFICATE_EXPIRY_HELP,
        CertificateExpiry::default(),
    );
    let offers_metrics = OfferMetrics::default();
    context.register_metric(OFFERS_READ, OFFERS_READ_HELP, offers_metrics.read.clone());
    context.register_metric(
        OFFERS_REFRESHES,
        OFFERS_REFRESHES_HELP,
        offers_metrics.refreshes.clone(),
    );
    let events_metrics = register_events_metrics(&context);
    let events_queue = match args.rds_events_queue {
        Some(address) => Some(EventsQueue::from_environment(address, requests.clone()).await),
        None => None,
    };
    let leadership = context.leadership.clone();
    let clients = RdsClients::from_environment(leadership, limits, args.cluster_name, requests);
    let clients = clients.await.with_allowed_regions(args.rds_regions);
    let clients = clients.with_external_ids(args.external_ids == ExternalIds::Annotation);
    let interval = args.catalogue_refresh_interval;
    let own_client = clients.default_client().await;
    let offers = (!interval.is_zero()).then(|| {
        OfferRefresh::new(
            own_client,
            context.client.clone(),
            &context.namespace,
            CATALOGUE_CONFIG_MAP,
            interval,
            offers_metrics,
        )
    });
    Ok(Rds {
        clients,
        source_policy,
        offers,
        ca_bundle,
        certificate_expiry,
        events: RdsEvents::default(),
        events_queue,
        events_metrics,
        config: RdsConfig {
            poll_interval: args.poll,
            resync_period: args.resync,
            resync_period_with_events: args.resync_with_events,
            not_found_grace_period: args.not_found_grace_period,
            unavailable_grace_period: args.unavailable_grace_period,
        },
    })
}

/// Returns the sources of data that objects may use.
fn source_policy(
    unowned: Unowned,
    allowed: Vec<NamespaceSources>,
    context: &OperatorContext,
) -> anyhow::Result<SourcePolicy> {
    // With Roles instead of ClusterRoles, it may not.
    let reads_namespaces = context.namespaces.is_empty();
    anyhow::ensure!(
        allowed.is_empty() || !reads_namespaces,
        "--allowed-sources is for a controller that is limited to some namespaces; this one reads the annotation {ALLOWED_SOURCES} of each Namespace instead"
    );
    Ok(SourcePolicy {
        unowned: unowned.into(),
        reads_namespaces,
        allowed: allowed.into_iter().collect(),
    })
}

fn register_events_metrics(context: &OperatorContext) -> RdsEventsMetrics {
    let RdsEventsMetrics {
        events,
        queue_errors,
        receiving,
        oldest_age,
        last_event,
    } = RdsEventsMetrics::default();
    RdsEventsMetrics {
        events: context.register_metric(RDS_EVENTS, RDS_EVENTS_HELP, events),
        queue_errors: context.register_metric(
            RDS_EVENTS_QUEUE_ERRORS,
            RDS_EVENTS_QUEUE_ERRORS_HELP,
            queue_errors,
        ),
        receiving: context.register_metric(
            RDS_EVENTS_RECEIVING,
            RDS_EVENTS_RECEIVING_HELP,
            receiving,
        ),
        oldest_age: context.register_metric(
            RDS_EVENTS_OLDEST_AGE,
            RDS_EVENTS_OLDEST_AGE_HELP,
            oldest_age,
        ),
        last_event: context.register_metric(RDS_EVENTS_LAST, RDS_EVENTS_LAST_HELP, last_event),
    }
}

/// Check of the annotations that choose a region and a role.
struct AnnotationsCheck(AccessCheck);

#[async_trait]
impl AdmissionCheck for AnnotationsCheck {
    async fn check(&self, request: &AdmissionCheckRequest) -> Result<AdmissionCheckResult, String> {
        let found = self.0.check(&request.object, request.old_object.as_ref());
        let errors = found.await?.into_iter().map(|error| Finding {
            rule: error.rule.to_owned(),
            field: "metadata.annotations".to_owned(),
            message: error.message,
        });
        Ok(AdmissionCheckResult {
            errors: errors.collect(),
            warnings: Vec::new(),
        })
    }
}

fn annotations_check(rds: &Rds, context: &OperatorContext) -> AnnotationsCheck {
    let watches_namespaces = context.namespaces.is_empty();
    let client = context.client.clone();
    AnnotationsCheck(AccessCheck::new(client, &rds.clients, watches_namespaces))
}

/// Returns the receiver of the events of RDS, if there is a queue.
fn events_receiver(rds: &Rds, context: &OperatorContext) -> Option<RdsEventsReceiver> {
    let queue = rds.events_queue.clone()?;
    let controllers = context.controllers.clone();
    let metrics = rds.events_metrics.clone();
    Some(
        rds.events
            .receiver(queue, controllers, metrics, rds.config.resync_period),
    )
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
    let reconciler = CloudDatabaseReconciler::new(
        context.client.clone(),
        rds.clients.clone(),
        rds.config,
        rds.certificate_expiry.clone(),
    )
    .with_secret_access(context.secret_access.clone())
    .with_ca_bundle(rds.ca_bundle.clone())
    .with_source_policy(rds.source_policy.clone())
    .with_offer_refresh(rds.offers.clone())
    .with_controllers(context.controllers.clone())
    .with_external_ids(NamedConfigMap::new(
        context.client.clone(),
        &context.namespace,
        EXTERNAL_IDS_CONFIG_MAP,
        "lockstep-external-ids",
    ))
    .with_events(rds.events.clone());
    if context.namespaces.is_empty() {
        reconciler
    } else {
        reconciler.without_namespaces()
    }
}
