//! The registry of kinds: the only place that names them.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use cloud_database_reconciler::{CloudDatabaseReconciler, RdsClient, RdsConfig};
use cloud_database_rules::CloudDatabase;
use controller::{
    Config, Controller, ControllerRegistry, DeletionTimeouts, Leadership, Metrics, OwnedType,
    RateLimiter, Reconciler, Runnable, api_resource,
};
use kube::Client;
use serde_json::Value;
use shared_validation::{PolicyHandle, Ruleset, ValidatedResource, Validator, ValidatorRegistry};
use vector_reconciler::ValidateOnlyReconciler;
use vector_rules::{
    ClusterVectorAggregator, ClusterVectorPipeline, MakeCompiler, Pipeline, Vector,
    VectorAggregator, VectorContext, VectorPipeline,
};

use crate::commands::vector::pool;
use crate::server::runtime::duration;

/// Returns all kinds. `compiler` creates the compiler for the programs of a Vector pipeline.
fn kinds(compiler: MakeCompiler) -> Vec<Registration> {
    let vector = Arc::new(VectorContext::new(compiler));
    vec![
        // The CRDs may belong to another installation. They must not be replaced unless the user names the kinds.
        pipeline::<VectorPipeline>(&vector).only_when_named(),
        pipeline::<ClusterVectorPipeline>(&vector).only_when_named(),
        kind::<Vector>(Vec::new, Operators::workloads::<Vector>).only_when_named(),
        kind::<VectorAggregator>(Vec::new, Operators::workloads::<VectorAggregator>)
            .only_when_named(),
        kind::<ClusterVectorAggregator>(Vec::new, Operators::workloads::<ClusterVectorAggregator>)
            .only_when_named(),
        kind::<CloudDatabase>(cloud_database_reconciler::rbac_rules, Operators::databases),
        pure(echo::operator).only_when_named(),
    ]
}

/// Compiles the ruleset of a kind.
type CompileFn = Arc<dyn Fn() -> anyhow::Result<Arc<dyn Validator>> + Send + Sync>;

/// Creates the controller of an operator.
type StartFn =
    Arc<dyn Fn(&Operators, Arc<dyn Validator>, &Wiring<'_>) -> Box<dyn Runnable> + Send + Sync>;

/// Context of a controller: its metrics, the registry that lists it and its namespace.
struct Wiring<'a> {
    metrics: &'a Metrics,
    registry: &'a ControllerRegistry,
    /// The only namespace that it watches; `None` for all.
    namespace: Option<&'a str>,
}

/// A kind and its operator.
#[derive(Clone)]
struct Registration {
    kind: &'static str,
    compile: CompileFn,
    /// RBAC rules of the operator, in addition to those for its own kind.
    rbac_rules: Vec<Value>,
    start: StartFn,
    by_default: bool,
    /// If true, all objects that the operator creates are namespaced.
    requires_cluster_scope: bool,
}

/// Registers a kind whose operator uses external systems and has options.
fn kind<K: ValidatedResource>(
    access: fn() -> Vec<Value>,
    start: impl Fn(&Operators, Arc<dyn Validator>, &Wiring<'_>) -> Box<dyn Runnable>
    + Send
    + Sync
    + 'static,
) -> Registration {
    Registration {
        kind: K::KIND,
        compile: Arc::new(|| Ok(Arc::new(compile::<K>()?))),
        rbac_rules: access(),
        start: Arc::new(start),
        by_default: true,
        requires_cluster_scope: true,
    }
}

/// Registers a kind of Vector pipelines.
fn pipeline<K: Pipeline>(vector: &Arc<VectorContext>) -> Registration {
    let vector = Arc::clone(vector);
    Registration {
        compile: Arc::new(move || {
            let ruleset = compile::<K>()?.with_extension(Arc::clone(&vector));
            Ok(Arc::new(ruleset))
        }),
        ..kind::<K>(Vec::new, Operators::pipelines::<K>)
    }
}

/// Registers a kind whose operator needs only the cluster.
fn pure<R: Reconciler>(operator: fn() -> R) -> Registration {
    Registration {
        kind: R::Kind::KIND,
        compile: Arc::new(|| Ok(Arc::new(compile::<R::Kind>()?))),
        rbac_rules: operator().rbac_rules(),
        start: Arc::new(move |operators, ruleset, place| operators.run(operator(), ruleset, place)),
        by_default: true,
        requires_cluster_scope: operator().owns().iter().all(OwnedType::is_namespaced),
    }
}

impl Registration {
    fn only_when_named(mut self) -> Self {
        self.by_default = false;
        self
    }
}

fn compile<K: ValidatedResource>() -> anyhow::Result<Ruleset<K>> {
    Ruleset::<K>::compile().with_context(|| format!("cannot compile the rules of {}", K::KIND))
}

/// Compiles the rulesets of all kinds, installed or not, for processes that validate objects of any kind.
pub(crate) fn validators() -> anyhow::Result<ValidatorRegistry> {
    validators_with(pool::compiler)
}

/// Compiles the rulesets of all kinds, as [`validators`] does, with another compiler for the programs of a Vector
/// pipeline.
pub(crate) fn validators_with(compiler: MakeCompiler) -> anyhow::Result<ValidatorRegistry> {
    let mut all = ValidatorRegistry::default();
    for registered in kinds(compiler) {
        all = all.register((registered.compile)()?);
    }
    Ok(all)
}

/// Option for the installed kinds.
#[derive(clap::Args)]
pub(crate) struct KindArgs {
    /// Kinds to install, comma-separated: `*` selects the default kinds, a name adds a kind, and `-` before a name
    /// excludes it.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    kinds: Vec<String>,
}

impl KindArgs {
    pub(crate) fn choose(&self) -> anyhow::Result<SelectedKinds> {
        let kinds = kinds(pool::compiler);
        for given in &self.kinds {
            let name = given.strip_prefix('-').unwrap_or(given);
            if given != "*" && !kinds.iter().any(|registered| registered.kind == name) {
                let known: Vec<_> = kinds.iter().map(|registered| registered.kind).collect();
                bail!(
                    "`--kinds` has the unknown kind '{name}'; allowed are `*`, {}, and these with a leading `-`",
                    known.join(", ")
                );
            }
        }
        let all = validators()?;
        let chosen = kinds.into_iter().filter(|registered| self.has(registered));
        let chosen = chosen
            .filter_map(|registered| {
                let mut validators = all.iter();
                let ruleset = validators.find(|ruleset| ruleset.kind() == registered.kind)?;
                Some((registered, Arc::clone(ruleset)))
            })
            .collect();
        Ok(SelectedKinds { all, chosen })
    }

    fn has(&self, registered: &Registration) -> bool {
        let is_given = |name: &str| self.kinds.iter().any(|given| given == name);
        let is_wanted = is_given(registered.kind) || is_given("*") && registered.by_default;
        is_wanted && !is_given(&format!("-{}", registered.kind))
    }

    /// Returns the command-line argument, or `None` for the default.
    pub(crate) fn argument(&self) -> Option<String> {
        (self.kinds != ["*"]).then(|| format!("--kinds={}", self.kinds.join(",")))
    }
}

/// The installed kinds with their compiled rulesets.
pub(crate) struct SelectedKinds {
    /// Rulesets of all kinds, installed or not.
    pub(crate) all: ValidatorRegistry,
    chosen: Vec<(Registration, Arc<dyn Validator>)>,
}

impl SelectedKinds {
    pub(crate) fn validators(&self) -> ValidatorRegistry {
        let validators = self.chosen.iter().map(|(_, ruleset)| Arc::clone(ruleset));
        validators.fold(ValidatorRegistry::default(), ValidatorRegistry::register)
    }

    /// Returns a kind that is cluster-scoped or whose operator creates cluster-scoped objects, if any.
    pub(crate) fn cluster_scoped_kind(&self) -> Option<&'static str> {
        let mut chosen = self.chosen.iter();
        let beyond = chosen.find(|(registered, ruleset)| {
            !registered.requires_cluster_scope || ruleset.crd()["spec"]["scope"] == "Cluster"
        });
        beyond.map(|(registered, _)| registered.kind)
    }

    /// Returns the RBAC rules of the operators, in addition to those for their own kinds.
    pub(crate) fn rbac_rules(&self) -> Vec<Value> {
        let access = self
            .chosen
            .iter()
            .map(|(registered, _)| &registered.rbac_rules);
        access.flatten().cloned().collect()
    }
}

/// Options of the operators.
#[derive(clap::Args)]
pub(crate) struct OperatorArgs {
    /// Interval at which RDS is polled while an instance is changing.
    #[arg(long = "rds-poll-interval", default_value = "30s", value_parser = duration)]
    poll: Duration,
    /// Interval at which RDS is polled while an instance is in its desired state.
    #[arg(long = "rds-resync-period", default_value = "10m", value_parser = duration)]
    resync: Duration,
    /// Time that RDS must report an instance as not found before it counts as missing, or as deleted if its object
    /// is being deleted.
    #[arg(long = "rds-not-found-grace-period", default_value = "2m", value_parser = duration)]
    settle: Duration,
    /// Maximum average number of calls to RDS per second. AWS throttles an account that sends too many.
    #[arg(long = "rds-qps", default_value = "10")]
    rds_rate: NonZeroU32,
    /// Maximum number of calls to RDS in a burst.
    #[arg(long = "rds-burst", default_value = "20")]
    rds_burst: NonZeroU32,
    /// Name of this cluster, with which RDS instances are tagged. Set it if several clusters share an AWS account
    /// and region. Without it, an instance of another cluster counts as an instance of this cluster if its object
    /// has the same namespace and name.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// Maximum average number of calls to the API server per second for reconciliations. Default: unlimited; only
    /// the API server's own flow control applies.
    #[arg(long)]
    kube_api_qps: Option<NonZeroU32>,
    /// Maximum number of calls to the API server in a burst for reconciliations. It applies only with
    /// `--kube-api-qps`.
    #[arg(long, default_value = "100")]
    kube_api_burst: NonZeroU32,
    /// Maximum number of objects of each kind that are reconciled concurrently.
    #[arg(long, default_value = "8")]
    max_concurrent_reconciles: NonZeroUsize,
    /// Time that a change of an object waits for further changes of it, to reconcile all of them together.
    #[arg(long, default_value = "0s", value_parser = duration)]
    debounce: Duration,
    /// Report an object as stalled (condition and Event) if its deletion takes longer than this.
    #[arg(long, default_value = "1h", value_parser = duration)]
    deletion_stalled_threshold: Duration,
    /// Remove the finalizer this long after deletion started even if cleanup has not completed. External resources
    /// are leaked and reported by an `Orphaned` Event. Default: never.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    force_finalize_after: Option<Duration>,
}

impl OperatorArgs {
    /// Returns the rate limiter for calls to the API server.
    pub(crate) fn api_calls(&self) -> RateLimiter {
        self.kube_api_qps
            .map_or_else(RateLimiter::unlimited, |rate| {
                RateLimiter::new(rate, self.kube_api_burst)
            })
    }

    fn deletion_timeouts(&self) -> anyhow::Result<DeletionTimeouts> {
        let told_after = self.deletion_stalled_threshold;
        if let Some(let_go_after) = self.force_finalize_after
            && let_go_after <= told_after
        {
            bail!(
                "`--force-finalize-after` is {let_go_after:?}: it must be greater than `--deletion-stalled-threshold` ({told_after:?})"
            );
        }
        Ok(DeletionTimeouts {
            stalled_after: told_after,
            force_after: self.force_finalize_after,
        })
    }
}

/// The configured operators. They outlive a leadership term of this replica.
pub(crate) struct Operators {
    client: Client,
    rds_client: RdsClient,
    rds_config: RdsConfig,
    deletion_timeouts: DeletionTimeouts,
    config: Config,
    kinds: SelectedKinds,
    policy: PolicyHandle,
    /// The watched namespaces; empty for all.
    namespaces: Vec<String>,
}

impl Operators {
    /// Sets up the parts that outlive a leadership term.
    pub(crate) async fn new(
        client: &Client,
        args: &OperatorArgs,
        kinds: SelectedKinds,
        policy: PolicyHandle,
        leadership: Leadership,
        namespaces: &[String],
    ) -> anyhow::Result<Self> {
        Ok(Self {
            namespaces: namespaces.to_vec(),
            client: client.clone(),
            kinds,
            policy,
            rds_client: RdsClient::from_environment(
                leadership,
                RateLimiter::new(args.rds_rate, args.rds_burst),
                args.cluster_name.clone(),
            )
            .await,
            deletion_timeouts: args.deletion_timeouts()?,
            config: Config {
                max_concurrent_reconciles: args.max_concurrent_reconciles,
                debounce: args.debounce,
            },
            rds_config: RdsConfig {
                poll_interval: args.poll,
                resync_period: args.resync,
                not_found_grace_period: args.settle,
            },
        })
    }

    /// Creates the controllers for one leadership term: one for each kind, and for each watched namespace if only
    /// some are watched.
    pub(crate) fn controllers(
        &self,
        metrics: &Metrics,
        directory: &ControllerRegistry,
    ) -> Vec<Box<dyn Runnable>> {
        let named = self.namespaces.iter().map(|name| Some(name.as_str()));
        let everywhere = self.namespaces.is_empty().then_some(None);
        let places = named.chain(everywhere).map(|within| Wiring {
            metrics,
            registry: directory,
            namespace: within,
        });
        let loops = places.flat_map(|place| {
            let chosen = self.kinds.chosen.iter();
            chosen.map(move |(registered, ruleset)| {
                (registered.start)(self, Arc::clone(ruleset), &place)
            })
        });
        loops.collect()
    }

    fn databases(&self, ruleset: Arc<dyn Validator>, place: &Wiring<'_>) -> Box<dyn Runnable> {
        let instances = self.rds_client.clone();
        let operator =
            CloudDatabaseReconciler::new(self.client.clone(), instances, self.rds_config);
        self.run(operator, ruleset, place)
    }

    fn pipelines<K: Pipeline>(
        &self,
        ruleset: Arc<dyn Validator>,
        place: &Wiring<'_>,
    ) -> Box<dyn Runnable> {
        let chosen = self.kinds.chosen.iter();
        let installed: Vec<_> = chosen
            .map(|(_, ruleset)| api_resource(&**ruleset))
            .collect();
        let judging = ValidateOnlyReconciler::<K>::pipelines(&installed);
        self.run(judging, ruleset, place)
    }

    fn workloads<K: ValidatedResource>(
        &self,
        ruleset: Arc<dyn Validator>,
        place: &Wiring<'_>,
    ) -> Box<dyn Runnable> {
        self.run(ValidateOnlyReconciler::<K>::workloads(), ruleset, place)
    }

    fn run(
        &self,
        operator: impl Reconciler,
        ruleset: Arc<dyn Validator>,
        place: &Wiring<'_>,
    ) -> Box<dyn Runnable> {
        let run = Controller::new(
            self.client.clone(),
            ruleset,
            operator,
            place.metrics.clone(),
            self.policy.clone(),
        );
        let run = run
            .with_deletion_timeouts(self.deletion_timeouts)
            .with_config(self.config);
        let run = run.register_in(place.registry);
        Box::new(match place.namespace {
            Some(namespace) => run.namespaced(namespace),
            None => run,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        kinds: KindArgs,
        #[command(flatten)]
        operators: OperatorArgs,
    }

    #[test]
    fn a_finalizer_is_not_removed_before_the_stall_is_reported() {
        let stalls = |arguments: &[&str]| {
            let options = Options::parse_from([&["lockstep"], arguments].concat());
            options
                .operators
                .deletion_timeouts()
                .map_err(|error| error.to_string())
        };
        assert!(stalls(&["--force-finalize-after=24h"]).is_ok());
        let error = stalls(&["--force-finalize-after=0s"]).expect_err("zero is too short");
        assert!(
            error.contains("must be greater than `--deletion-stalled-threshold`"),
            "{error}"
        );
    }

    fn chosen(kinds: &[&str]) -> Result<Vec<String>, String> {
        let kinds = Options::parse_from([&["lockstep"], kinds].concat()).kinds;
        let chosen = kinds.choose().map_err(|error| error.to_string())?;
        let validators = chosen.validators();
        Ok(validators
            .iter()
            .map(|kind| kind.kind().to_owned())
            .collect())
    }

    #[test]
    fn examples_are_installed_only_by_name_and_any_kind_can_be_excluded() {
        let is =
            |kinds: &[&str]| Ok::<_, String>(kinds.iter().map(|kind| (*kind).to_owned()).collect());
        assert_eq!(chosen(&[]), is(&["CloudDatabase"]));
        assert_eq!(chosen(&["--kinds=*,Echo"]), is(&["CloudDatabase", "Echo"]));
        assert_eq!(chosen(&["--kinds", "Echo"]), is(&["Echo"]));
        assert_eq!(chosen(&["--kinds", "-CloudDatabase,*"]), is(&[]));
        let error = chosen(&["--kinds=Eko"]).expect_err("no such kind");
        assert!(
            error.contains("'Eko'") && error.contains("CloudDatabase, Echo"),
            "{error}"
        );
    }
}
