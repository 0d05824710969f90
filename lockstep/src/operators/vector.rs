//! Vector: log pipelines, and the agents and aggregators that run them.

use std::env;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use lockstep_controller::{NamedConfigMap, Reconciler};
use lockstep_sdk::shared_validation::{Policy, ValidatedResource};
use lockstep_sdk::{
    AdmissionCheck, AdmissionCheckRequest, AdmissionCheckResult, Audience, AuditFinding,
    AuditSnapshot, ExtensionReload, Finding, Operator, OperatorContext, RulesetExtension,
    SensitiveNamespace, duration,
};
use lockstep_vector_api::port_allocation::ClusterSnapshot;
use lockstep_vector_api::{
    Catalogues, ClusterVectorAggregator, ClusterVectorPipeline, NamespaceAudit, Pipeline, Vector,
    VectorAggregator, VectorContext, VectorPipeline, WorkloadKind, is_exact,
};
use lockstep_vector_controller::{
    CatalogueLearner, CheckSlots, ExactCheck, ExactCheckResult, Installation, PodChecks,
    QuotaAudit, ValidateOnlyReconciler, WORKLOAD_PODS, WORKLOAD_PODS_HELP, WorkloadNamespaces,
    WorkloadPods, WorkloadReconciler, owned,
};
use serde_json::Value;

use lockstep_vector_cli as vector;
use lockstep_vector_cli::catalogue_files::{CatalogueArgs, CatalogueFolders};

/// Argument with the folders of catalogues.
const CATALOGUES: &str = "--vector-catalogues";

/// Name of the optional `ConfigMap` with catalogues, one key for each version.
const CATALOGUES_CONFIG_MAP: &str = "lockstep-vector-catalogues";

/// Properties of the cluster, and limits that all kinds share.
pub(crate) struct ClusterFeatures {
    /// If true, the cluster has the API type `PodMonitor` of the Prometheus Operator.
    has_pod_monitors: bool,
    /// Image with this program, and the Pods of the controller.
    installation: Installation,
    check_slots: Arc<CheckSlots>,
    check_timeout: Duration,
    /// Learner of catalogues, if the controller runs in a Pod.
    learner: Option<Arc<CatalogueLearner>>,
}

/// Options of the operator.
#[derive(clap::Args)]
#[command(next_help_heading = "Vector")]
struct VectorArgs {
    /// Maximum number of Pods that check configurations at the same time (`configCheck.mode` of a workload).
    #[arg(long = "vector-max-check-pods", default_value = "5")]
    max_check_pods: NonZeroUsize,
    /// Time after which a Pod that checks a configuration is ended without a result.
    #[arg(long = "vector-check-timeout", default_value = "5m", value_parser = duration)]
    check_timeout: Duration,
    /// Time after which a Pod whose reload has begun and not ended is reported, and evicted if the workload demands it.
    #[arg(long = "vector-reload-timeout", default_value = "5m", value_parser = duration)]
    reload_timeout: Duration,
    /// Image with this program. Agents and aggregators whose components get other names run it as an init container, which
    /// moves their data, and so do the Pods of `configCheck.warm` and the event collector. Default: the image in the Deployment
    /// of the controller. If there is none, no data is moved, there are no such Pods, and the event collector is that of kaasops.
    #[arg(long = "vector-migration-image", value_name = "IMAGE")]
    migration_image: Option<String>,
    #[command(flatten)]
    workload_namespaces: WorkloadNamespaceArgs,
}

/// Namespaces in which workloads may run, for the controller and for `audit`.
#[derive(clap::Args)]
#[command(next_help_heading = "Vector")]
struct WorkloadNamespaceArgs {
    /// Namespaces in which agents and aggregators may take pipelines or data of other namespaces, separated by commas, instead of
    /// those that are annotated with `lockstep.dev/vector-workloads=allowed`. Users who may read Secrets there can read all that is
    /// collected. With it, neither the controller nor `audit` reads Namespaces. Both need the same list.
    #[arg(
        long = "vector-workload-namespaces",
        value_name = "NAMESPACES",
        value_delimiter = ','
    )]
    workload_namespaces: Vec<String>,
}

/// Returns the operator.
pub(crate) fn operator() -> Operator<ClusterFeatures> {
    let operator = Operator::with_args(features)
        .kind(Audience::Tenants, |_, context| {
            pipelines::<VectorPipeline>(context)
        })
        .kind(Audience::Administrators, |_, context| {
            pipelines::<ClusterVectorPipeline>(context)
        });
    let operator = workload_kind::<Vector>(Audience::Administrators, operator);
    let operator = workload_kind::<VectorAggregator>(Audience::Tenants, operator);
    workload_kind::<ClusterVectorAggregator>(Audience::Administrators, operator)
        // The CRDs may belong to another installation. They must not be replaced unless the user names the kinds.
        .only_when_named()
        .audit_snapshot(PipelineSnapshot::new)
        .subcommand(vector::run)
        .ruleset_extension(context)
        .policy_folder_arg(CATALOGUES)
        .config_map_arg(CATALOGUES_CONFIG_MAP, CATALOGUES)
        .admission_check(is_checked, |features, context| {
            PipelineCheck(ExactCheck::new(
                context.client.clone(),
                vector_context(context),
                &context.installed_kinds,
                features.installation.workload_namespaces.clone(),
                context.secret_access.clone(),
            ))
        })
        .own_namespace_rules(NamedConfigMap::rbac_rules(CATALOGUES_CONFIG_MAP))
}

/// Returns true if the policy demands that Vector itself is asked about objects of a kind.
fn is_checked(kind: &str, policy: &Policy) -> bool {
    let is_pipeline = [VectorPipeline::KIND, ClusterVectorPipeline::KIND].contains(&kind);
    is_pipeline && is_exact(policy.settings("vector"))
}

/// Check of pipelines by the Vector of the workloads that select them.
struct PipelineCheck(ExactCheck);

#[async_trait]
impl AdmissionCheck for PipelineCheck {
    async fn check(&self, request: &AdmissionCheckRequest) -> Result<AdmissionCheckResult, String> {
        let result = self.0.check(&request.object, request.old_object.as_ref());
        let ExactCheckResult {
            rejections,
            warnings,
        } = result.await?;
        Ok(AdmissionCheckResult {
            errors: rejections
                .into_iter()
                .map(|it| finding("rejected-by-vector", it))
                .collect(),
            warnings: warnings
                .into_iter()
                .map(|it| finding("not-checked", it))
                .collect(),
        })
    }
}

fn finding(rule: &str, message: String) -> Finding {
    Finding {
        rule: rule.to_owned(),
        field: "spec".to_owned(),
        message,
    }
}

/// Finds out whether the cluster has the API type `PodMonitor`, and the image of this program. If the API type is
/// installed later, the controller must be restarted.
async fn features(args: VectorArgs, context: OperatorContext) -> anyhow::Result<ClusterFeatures> {
    let found = lockstep_vector_controller::has_pod_monitors(&context.client).await;
    let has_pod_monitors = found.context("cannot find out whether the cluster has PodMonitors")?;
    let mut installation = own_installation(&context).await?;
    installation.image = args.migration_image.or(installation.image);
    installation.reload_timeout = Some(args.reload_timeout);
    installation.workload_pods =
        context.register_metric(WORKLOAD_PODS, WORKLOAD_PODS_HELP, WorkloadPods::default());
    let listed = args.workload_namespaces.workload_namespaces;
    if !listed.is_empty() {
        installation.workload_namespaces = WorkloadNamespaces::Listed(listed);
    }
    installation.secret_access = context.secret_access.clone();
    Ok(ClusterFeatures {
        has_pod_monitors,
        installation,
        check_slots: Arc::new(CheckSlots::new(args.max_check_pods, args.check_timeout)),
        check_timeout: args.check_timeout,
        learner: learner(&context),
    })
}

/// Returns the learner of catalogues. It writes into the namespace of the installation.
fn learner(context: &OperatorContext) -> Option<Arc<CatalogueLearner>> {
    let namespace = env::var("POD_NAMESPACE").ok()?;
    let (client, controllers) = (context.client.clone(), context.controllers.clone());
    let learner = CatalogueLearner::new(client, &namespace, CATALOGUES_CONFIG_MAP, controllers);
    Some(Arc::new(learner))
}

/// Returns the image of this program and the Pods of the controller, if it runs in a Pod.
async fn own_installation(context: &OperatorContext) -> anyhow::Result<Installation> {
    let (Ok(namespace), Ok(pod)) = (env::var("POD_NAMESPACE"), env::var("POD_NAME")) else {
        return Ok(Installation::default());
    };
    let client = &context.client;
    let found = lockstep_vector_controller::controller_installation(client, &namespace, &pod);
    let found = found.await;
    found.context("cannot read the Deployment of the controller, which names its image")
}

fn workload_kind<K: WorkloadKind>(
    audience: Audience,
    operator: Operator<ClusterFeatures>,
) -> Operator<ClusterFeatures> {
    let types = owned::owned_types(K::ROLE, true);
    let rules = || lockstep_vector_controller::rbac_rules(K::ROLE);
    operator.kind_that_owns(
        audience,
        &types,
        rules,
        |features: &ClusterFeatures, context| {
            let checks = PodChecks::new(
                Arc::clone(&features.check_slots),
                features.check_timeout,
                context.controllers.clone(),
            );
            WorkloadReconciler::<K>::new(
                context.client.clone(),
                vector_context(context),
                &context.installed_kinds,
                features.has_pod_monitors,
                features.installation.clone(),
                checks,
                features.learner.clone(),
            )
        },
    )
}

fn pipelines<K: Pipeline>(context: &OperatorContext) -> impl Reconciler<Kind = K> + use<K> {
    ValidateOnlyReconciler::<K>::pipelines(&context.installed_kinds, vector_context(context))
}

/// Returns the context of the rules.
fn vector_context(context: &OperatorContext) -> Arc<VectorContext> {
    let extension = context.ruleset_extension::<VectorContext>();
    extension.expect("the operator sets the extension of its rulesets")
}

/// Creates the environment of VRL programs and the validation cache for a subcommand. Webhook and controller read the
/// catalogues again when they change; for other subcommands, a catalogue that cannot be read is an error.
fn context(args: &CatalogueArgs, command: &str) -> anyhow::Result<RulesetExtension> {
    let environment = vector::environment::of_pipelines(command);
    let new = |catalogues| {
        let context = VectorContext::new(environment, catalogues);
        let context = context.with_change_preview(lockstep_vector_controller::preview_change);
        // They run programs of their author on the machine of their author.
        if command == "check" {
            context.with_tests(vector::run_tests)
        } else {
            context
        }
    };
    if !["webhook", "controller"].contains(&command) {
        let context = new(args.read()?);
        return Ok(RulesetExtension::new(Arc::new(context)));
    }
    let context = Arc::new(new(Catalogues::default()));
    let mut folders = args.folders();
    let of_reload = Arc::clone(&context);
    Ok(RulesetExtension::new(context).reloaded_by(
        "lockstep_vector_catalogues_valid",
        "1 if all catalogues of Vector versions are valid and in force, 0 otherwise",
        move || reload(&mut folders, &of_reload),
    ))
}

/// Reads the catalogues again, and uses those that have changed.
fn reload(folders: &mut CatalogueFolders, context: &VectorContext) -> ExtensionReload {
    let is_changed = folders.scan();
    if is_changed {
        for problem in &folders.problems {
            tracing::error!(
                "{problem}; the last valid catalogue of the file, if any, stays in force"
            );
        }
        let versions: Vec<_> = folders.catalogues.iter().map(|it| &*it.version).collect();
        let versions = versions.join(", ");
        tracing::info!(versions, "the catalogues were loaded and are in force");
        context.set_catalogues(Catalogues::with(&folders.catalogues));
    }
    ExtensionReload {
        is_changed,
        is_valid: folders.problems.is_empty(),
    }
}

/// The pipelines of a cluster and the objects that run them. They are compared with each other, as in the controller, with the
/// marks of the Namespaces or the list of them, and with the quotas of the policy.
struct PipelineSnapshot {
    all: ClusterSnapshot,
    namespaces: NamespaceAudit,
    quotas: QuotaAudit,
}

impl PipelineSnapshot {
    fn new(args: WorkloadNamespaceArgs) -> Self {
        Self {
            all: ClusterSnapshot::default(),
            namespaces: NamespaceAudit::new(args.workload_namespaces),
            quotas: QuotaAudit::default(),
        }
    }
}

impl AuditSnapshot for PipelineSnapshot {
    fn includes(&self, kind: &str) -> bool {
        ClusterSnapshot::has(kind)
    }

    fn add(&mut self, object: &Value) {
        self.all.add(object);
        self.namespaces.add(object);
        self.quotas.add(object);
    }

    fn related(&self, object: &Value) -> Value {
        self.all.shared(object)
    }

    fn includes_namespaces(&self) -> bool {
        self.namespaces.needs_namespaces()
    }

    fn add_namespace(&mut self, namespace: &Value) {
        self.namespaces.add_namespace(namespace);
    }

    fn findings(&self, policy: &Policy) -> Vec<AuditFinding> {
        let unmarked = self.namespaces.unmarked();
        let missing = unmarked.into_iter().map(|message| AuditFinding {
            id: "namespace-not-marked",
            is_error: true,
            message,
            access_to: None,
        });
        let workloads = [
            Vector::crd(),
            VectorAggregator::crd(),
            ClusterVectorAggregator::crd(),
        ];
        let workloads = workloads.map(|crd| crd_name(&crd));
        let marked = self.namespaces.marked().map(|namespace| AuditFinding {
            id: "namespace-marked",
            is_error: false,
            message: format!(
                "users who may read Secrets, create Pods, execute commands in them or act as service accounts in the namespace {namespace}, as with the ClusterRole edit, can read all that its workloads collect"
            ),
            access_to: Some(SensitiveNamespace {
                name: namespace.to_owned(),
                workloads: workloads.to_vec(),
            }),
        });
        let exceeded = self.quotas.exceeded(policy.settings("vector"));
        let exceeded = exceeded.into_iter().map(|message| AuditFinding {
            id: "quota-exceeded",
            is_error: false,
            message: format!(
                "{message}; what runs keeps running, and what is new or grows will wait"
            ),
            access_to: None,
        });
        missing.chain(exceeded).chain(marked).collect()
    }
}

fn crd_name(crd: &Value) -> String {
    let name = crd["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}
