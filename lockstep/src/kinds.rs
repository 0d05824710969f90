//! Which kinds there are: the one place that names them.

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
    ClusterVectorAggregator, ClusterVectorPipeline, Pipeline, Vector, VectorAggregator,
    VectorPipeline,
};

use crate::serving::duration;

/// Every kind, a line each.
fn kinds() -> Vec<Registration> {
    vec![
        // Their CRDs may be another installation's, which is not to be replaced unasked.
        kind::<VectorPipeline>(Vec::new, Operators::pipelines::<VectorPipeline>).only_when_named(),
        kind::<ClusterVectorPipeline>(Vec::new, Operators::pipelines::<ClusterVectorPipeline>)
            .only_when_named(),
        kind::<Vector>(Vec::new, Operators::workloads::<Vector>).only_when_named(),
        kind::<VectorAggregator>(Vec::new, Operators::workloads::<VectorAggregator>)
            .only_when_named(),
        kind::<ClusterVectorAggregator>(Vec::new, Operators::workloads::<ClusterVectorAggregator>)
            .only_when_named(),
        kind::<CloudDatabase>(cloud_database_reconciler::rbac_rules, Operators::databases),
        pure(echo::operator).only_when_named(),
    ]
}

/// Makes an operator's loop.
type StartFn =
    Arc<dyn Fn(&Operators, Arc<dyn Validator>, &Wiring<'_>) -> Box<dyn Runnable> + Send + Sync>;

/// Where a loop is counted and listed.
struct Wiring<'a> {
    metrics: &'a Metrics,
    registry: &'a ControllerRegistry,
    /// The namespace that it keeps to, if it does.
    namespace: Option<&'a str>,
}

/// A kind and its operator.
#[derive(Clone)]
struct Registration {
    kind: &'static str,
    compile: fn() -> anyhow::Result<Arc<dyn Validator>>,
    /// What the operator may do beyond its own kind, as RBAC rules.
    rbac_rules: Vec<Value>,
    start: StartFn,
    by_default: bool,
    /// Whether all that its operator makes lives in namespaces.
    requires_cluster_scope: bool,
}

/// A kind whose operator asks other systems, and is told how.
fn kind<K: ValidatedResource>(
    access: fn() -> Vec<Value>,
    start: impl Fn(&Operators, Arc<dyn Validator>, &Wiring<'_>) -> Box<dyn Runnable>
    + Send
    + Sync
    + 'static,
) -> Registration {
    Registration {
        kind: K::KIND,
        compile: compile::<K>,
        rbac_rules: access(),
        start: Arc::new(start),
        by_default: true,
        requires_cluster_scope: true,
    }
}

/// A kind whose operator needs nothing but the cluster.
fn pure<R: Reconciler>(operator: fn() -> R) -> Registration {
    Registration {
        kind: R::Kind::KIND,
        compile: compile::<R::Kind>,
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

fn compile<K: ValidatedResource>() -> anyhow::Result<Arc<dyn Validator>> {
    let ruleset = Ruleset::<K>::compile().with_context(|| format!("the rules of {}", K::KIND))?;
    Ok(Arc::new(ruleset))
}

/// Compiles every kind's ruleset, installed or not: for who judges whatever comes.
pub(crate) fn rulesets() -> anyhow::Result<ValidatorRegistry> {
    let mut all = ValidatorRegistry::default();
    for registered in kinds() {
        all = all.register((registered.compile)()?);
    }
    Ok(all)
}

/// Which kinds are installed.
#[derive(clap::Args)]
pub(crate) struct KindArgs {
    /// The kinds that are installed: `*` stands for all but examples, a name adds one, and a name after `-`
    /// leaves one out.
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
        let kinds = kinds();
        for given in &self.kinds {
            let name = given.strip_prefix('-').unwrap_or(given);
            if given != "*" && !kinds.iter().any(|registered| registered.kind == name) {
                let known: Vec<_> = kinds.iter().map(|registered| registered.kind).collect();
                bail!(
                    "`--kinds` has '{name}'; it may have `*`, {}, and these after `-`",
                    known.join(", ")
                );
            }
        }
        let all = rulesets()?;
        let chosen = kinds.into_iter().filter(|registered| self.has(registered));
        let chosen = chosen
            .filter_map(|registered| {
                let mut rulesets = all.iter();
                let ruleset = rulesets.find(|ruleset| ruleset.kind() == registered.kind)?;
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

    /// As an argument, where it is not what holds without it.
    pub(crate) fn argument(&self) -> Option<String> {
        (self.kinds != ["*"]).then(|| format!("--kinds={}", self.kinds.join(",")))
    }
}

/// The kinds that are installed, compiled.
pub(crate) struct SelectedKinds {
    /// Also of those that are not installed.
    pub(crate) all: ValidatorRegistry,
    chosen: Vec<(Registration, Arc<dyn Validator>)>,
}

impl SelectedKinds {
    pub(crate) fn rulesets(&self) -> ValidatorRegistry {
        let rulesets = self.chosen.iter().map(|(_, ruleset)| Arc::clone(ruleset));
        rulesets.fold(ValidatorRegistry::default(), ValidatorRegistry::register)
    }

    /// One that is, or makes, something that lives in no namespace.
    pub(crate) fn cluster_scoped_kind(&self) -> Option<&'static str> {
        let mut chosen = self.chosen.iter();
        let beyond = chosen.find(|(registered, ruleset)| {
            !registered.requires_cluster_scope || ruleset.crd()["spec"]["scope"] == "Cluster"
        });
        beyond.map(|(registered, _)| registered.kind)
    }

    /// What their operators may do beyond their own kinds, as RBAC rules.
    pub(crate) fn rbac_rules(&self) -> Vec<Value> {
        let access = self
            .chosen
            .iter()
            .map(|(registered, _)| &registered.rbac_rules);
        access.flatten().cloned().collect()
    }
}

/// What the operators can be told.
#[derive(clap::Args)]
pub(crate) struct OperatorArgs {
    /// How often RDS is looked at while something is under way.
    #[arg(long = "rds-poll", default_value = "30s", value_parser = duration)]
    poll: Duration,
    /// How often RDS is looked at while all is as it should be.
    #[arg(long = "rds-resync", default_value = "10m", value_parser = duration)]
    resync: Duration,
    /// Time for which RDS must not show an instance before it counts as missing, or as gone while its object is deleted.
    #[arg(long = "rds-settle", default_value = "2m", value_parser = duration)]
    settle: Duration,
    /// How many calls a second RDS gets; AWS turns those away that are too many for the account.
    #[arg(long = "rds-rate", default_value = "10")]
    rds_rate: NonZeroU32,
    /// How many of them may come at once.
    #[arg(long = "rds-burst", default_value = "20")]
    rds_burst: NonZeroU32,
    /// Name of this cluster, which RDS instances are tagged with. Set it where several clusters share an AWS account
    /// and region: without it, an instance of another cluster counts as one of this cluster's if its object has the same
    /// namespace and name.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// How many calls a second the API server gets for the objects that are reconciled. Without this, as many
    /// as its own flow control takes.
    #[arg(long)]
    kube_api_qps: Option<NonZeroU32>,
    /// How many of them may come at once.
    #[arg(long, default_value = "100")]
    kube_api_burst: NonZeroU32,
    /// How many objects of a kind are reconciled at once.
    #[arg(long, default_value = "8")]
    max_concurrent_reconciles: NonZeroUsize,
    /// How long a change waits for others of the same object, to be answered together.
    #[arg(long, default_value = "0s", value_parser = duration)]
    debounce: Duration,
    /// When a deletion that has not ended is told, by a condition and an Event.
    #[arg(long, default_value = "1h", value_parser = duration)]
    deletion_stalled_threshold: Duration,
    /// Let an object go this long after its deletion began, although its cleanup has not ended: what it stood
    /// for is left behind, and told by an Event `Orphaned`. Without this, never.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    force_finalize_after: Option<Duration>,
}

impl OperatorArgs {
    /// That of the calls to the API server.
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
                "`--let-go-after` is {let_go_after:?}: it must be more than `--deletion-stalled-after`, which is {told_after:?}"
            );
        }
        Ok(DeletionTimeouts {
            stalled_after: told_after,
            force_after: self.force_finalize_after,
        })
    }
}

/// The operators, ready to work for as many terms as this replica leads.
pub(crate) struct Operators {
    client: Client,
    rds_client: RdsClient,
    rds_config: RdsConfig,
    deletion_timeouts: DeletionTimeouts,
    config: Config,
    kinds: SelectedKinds,
    policy: PolicyHandle,
    /// Those that it keeps to; none stands for all.
    namespaces: Vec<String>,
}

impl Operators {
    /// Sets up what outlives a term.
    pub(crate) async fn new(
        client: &Client,
        args: &OperatorArgs,
        kinds: SelectedKinds,
        policy: PolicyHandle,
        tenure: Leadership,
        namespaces: &[String],
    ) -> anyhow::Result<Self> {
        Ok(Self {
            namespaces: namespaces.to_vec(),
            client: client.clone(),
            kinds,
            policy,
            rds_client: RdsClient::from_environment(
                tenure,
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

    /// Every kind's loop, for one term; in each of the namespaces, if there are any.
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
    fn no_object_is_let_go_before_anybody_is_told() {
        let stalls = |arguments: &[&str]| {
            let options = Options::parse_from([&["lockstep"], arguments].concat());
            options
                .operators
                .deletion_timeouts()
                .map_err(|error| error.to_string())
        };
        assert!(stalls(&["--let-go-after=24h"]).is_ok());
        let error = stalls(&["--let-go-after=0s"]).expect_err("at once");
        assert!(
            error.contains("must be more than `--deletion-stalled-after`"),
            "{error}"
        );
    }

    fn chosen(kinds: &[&str]) -> Result<Vec<String>, String> {
        let kinds = Options::parse_from([&["lockstep"], kinds].concat()).kinds;
        let chosen = kinds.choose().map_err(|error| error.to_string())?;
        let rulesets = chosen.rulesets();
        Ok(rulesets.iter().map(|kind| kind.kind().to_owned()).collect())
    }

    #[test]
    fn examples_are_installed_only_by_name_and_any_kind_can_be_left_out() {
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
