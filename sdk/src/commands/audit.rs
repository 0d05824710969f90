//! `lockstep audit`: validation of the objects that are stored in a cluster.

mod findings;
mod namespace_access;
mod rbac_objects;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::ArgMatches;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, ListParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use lockstep_controller::CustomObject;
use lockstep_shared_validation::{
    LastValidated, Policy, ValidationRequest, ValidationResult, Validator, Violation,
};
use serde_json::{Value, json};

use crate::args::policy;
use crate::commands::audit::findings::ResolvedFinding;
use crate::environment::Environment;
use crate::operator::audit_snapshot::{AuditFinding, AuditSnapshot};
use crate::printer;
use crate::registry::Registry;
use crate::server::runtime;

/// Maximum number of objects in one page of a list request.
const PAGE: u32 = 500;

/// Maximum number of objects that the text output names for each rule and effect.
const NAMED: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Validate only objects of this kind. Default: all kinds.
    #[arg(long)]
    kind: Option<String>,
    /// Validate only objects in this namespace. Default: all namespaces.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Policy file, to see what it would deny, warn about or audit. Default: the severity of each rule.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Output {
    /// Human-readable table by rule.
    Text,
    /// One JSON object with all objects that violate a rule.
    Json,
}

/// Objects that violate one rule, by effect.
#[derive(Default)]
struct RuleSummary {
    denied: Vec<String>,
    warned: Vec<String>,
    audited: Vec<String>,
    /// Objects that are valid alone but conflict with other objects. The webhook cannot detect these, but the
    /// controller does.
    conflicts: Vec<String>,
}

/// Runs the command. `arguments` contains those of the operators, too.
pub(crate) fn run(args: &Args, arguments: &ArgMatches, environment: &Environment) -> ExitCode {
    // kube uses rustls, which needs a process-wide TLS provider. If one is already installed, it is kept.
    drop(rustls::crypto::ring::default_provider().install_default());
    match runtime::block_on(audit(args, arguments, environment.registry())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{}: {error:#}", environment.name());
            ExitCode::from(2)
        }
    }
}

async fn audit(args: &Args, arguments: &ArgMatches, registry: &Registry) -> anyhow::Result<bool> {
    let validators = registry.validators()?;
    let policy = match &args.policy {
        Some(path) => policy::read(path, &validators)?,
        None => Policy::default(),
    };
    if let Some(kind) = &args.kind {
        let kinds: Vec<_> = validators.iter().map(|ruleset| ruleset.kind()).collect();
        anyhow::ensure!(
            validators
                .iter()
                .any(|ruleset| is_kind(ruleset.as_ref(), kind)),
            "unknown kind `{kind}` in `--kind`; known kinds: {}",
            kinds.join(", ")
        );
    }
    let client = Client::try_default()
        .await
        .context("cannot load the cluster configuration; set KUBECONFIG")?;
    let namespace = args.namespace.as_deref();
    let wanted = |ruleset: &&Arc<dyn Validator>| {
        let mut kind = args.kind.iter();
        kind.all(|kind| is_kind(ruleset.as_ref(), kind))
    };
    let wanted_validators: Vec<_> = validators.iter().filter(wanted).collect();
    let mut snapshots = Snapshots::new();
    for operator in &registry.operators {
        let Some(definition) = &operator.definition.audit_snapshot else {
            continue;
        };
        let create = &definition.create;
        let empty = create(arguments)?;
        let snapshot = fill(&client, empty, &wanted_validators, namespace).await?;
        let kinds = operator.definition.kinds.iter().map(|kind| kind.kind);
        snapshots.push((kinds.collect(), snapshot));
    }
    let (mut known, mut objects) = (0, 0);
    let mut by_rule: BTreeMap<(String, String), RuleSummary> = BTreeMap::new();
    for ruleset in wanted_validators {
        let snapshot = snapshots
            .iter()
            .find(|(kinds, _)| kinds.contains(&ruleset.kind()));
        let seen = list_all(&client, ruleset.as_ref(), namespace, |name, object| {
            let last_validated = LastValidated::from_status_of(object);
            let others = snapshot.map_or(Value::Null, |(_, it)| it.snapshot.related(object));
            let request = ValidationRequest::create(object)
                .with_last_validated(last_validated.as_ref())
                .with_policy(&policy)
                .with_related(&others);
            let result = ruleset.validate(&request);
            summarize(&mut by_rule, ruleset.kind(), name, &result);
        })
        .await
        .with_context(|| format!("cannot list {}", ruleset.kind()))?;
        let is_named = args.kind.is_some();
        anyhow::ensure!(
            seen.is_some() || !is_named,
            "cannot list {}: its CRD is not installed in the cluster; apply it first",
            ruleset.kind()
        );
        known += usize::from(seen.is_some());
        objects += seen.unwrap_or_default();
    }
    anyhow::ensure!(
        known > 0,
        "none of the known CRDs is installed in the cluster; apply them first"
    );
    let findings = snapshots
        .iter()
        .flat_map(|(_, snapshot)| snapshot.findings(&policy))
        .filter(|finding| finding.concerns(namespace))
        .collect();
    let findings = findings::resolve(&client, findings)
        .await
        .context("cannot list the RBAC objects")?;
    match args.output {
        Output::Text => {
            let text = [findings::to_text(&findings), to_text(objects, &by_rule)].concat();
            printer::print(&text)?;
        }
        Output::Json => printer::print(&format!("{}\n", to_json(objects, &by_rule, &findings)))?,
    }
    let has_errors = findings.iter().any(ResolvedFinding::is_error);
    Ok(!has_errors && by_rule.values().all(|broken| broken.denied.is_empty()))
}

/// Snapshots of operators, each with the kinds of its operator.
type Snapshots = Vec<(Vec<&'static str>, OperatorSnapshot)>;

/// Lists the objects that a snapshot includes, among those of these kinds. They are compared with each other, as in the
/// controller.
async fn fill(
    client: &Client,
    mut snapshot: Box<dyn AuditSnapshot>,
    validators: &[&Arc<dyn Validator>],
    namespace: Option<&str>,
) -> anyhow::Result<OperatorSnapshot> {
    let included: Vec<_> = validators
        .iter()
        .filter(|ruleset| snapshot.includes(ruleset.kind()))
        .collect();
    for ruleset in &included {
        let see = |_: &str, object: &Value| snapshot.add(object);
        let seen = list_all(client, ruleset.as_ref(), namespace, see).await;
        seen.with_context(|| format!("cannot list {}", ruleset.kind()))?;
    }
    let has_findings = match add_namespaces(client, snapshot.as_mut(), namespace).await {
        Ok(()) => !included.is_empty(),
        Err(error) => {
            eprintln!("namespaces were not checked, because they cannot be read: {error}");
            false
        }
    };
    Ok(OperatorSnapshot {
        snapshot,
        has_findings,
    })
}

/// Snapshot of an operator.
struct OperatorSnapshot {
    snapshot: Box<dyn AuditSnapshot>,
    /// If true, the snapshot has all that its findings depend on.
    has_findings: bool,
}

impl OperatorSnapshot {
    fn findings(&self, policy: &Policy) -> Vec<AuditFinding> {
        if self.has_findings {
            self.snapshot.findings(policy)
        } else {
            Vec::new()
        }
    }
}

/// Adds the Namespaces to a snapshot that includes them: all, or the one whose objects are validated.
async fn add_namespaces(
    client: &Client,
    snapshot: &mut dyn AuditSnapshot,
    namespace: Option<&str>,
) -> Result<(), kube::Error> {
    if !snapshot.includes_namespaces() {
        return Ok(());
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let selector = namespace.map(|name| format!("metadata.name={name}"));
    let mut params = ListParams {
        field_selector: selector,
        ..ListParams::default().limit(PAGE)
    };
    loop {
        let page = namespaces.list_metadata(&params).await?;
        for namespace in &page.items {
            snapshot.add_namespace(&json!({"metadata": namespace.metadata}));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

fn is_kind(ruleset: &dyn Validator, kind: &str) -> bool {
    ruleset.kind().eq_ignore_ascii_case(kind)
}

/// Calls `see` for every object of a kind, page by page, and returns their number. Returns `None` if the cluster
/// does not have the kind.
async fn list_all(
    client: &Client,
    ruleset: &dyn Validator,
    namespace: Option<&str>,
    mut see: impl FnMut(&str, &Value),
) -> anyhow::Result<Option<usize>> {
    let gvk = GroupVersionKind::gvk(ruleset.group(), ruleset.version(), ruleset.kind());
    let plural = ruleset.crd()["spec"]["names"]["plural"]
        .as_str()
        .unwrap_or_default();
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    let api: Api<CustomObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut params = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let page = match api.list(&params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            page => page?,
        };
        count += page.items.len();
        for object in page.items.into_iter().map(CustomObject::into_inner) {
            let namespace = object.namespace().unwrap_or_default();
            see(
                &format!("{namespace}/{}", object.name_any()),
                &serde_json::to_value(&object)?,
            );
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(Some(count)),
        }
    }
}

fn summarize(
    by_rule: &mut BTreeMap<(String, String), RuleSummary>,
    kind: &str,
    name: &str,
    result: &ValidationResult,
) {
    let mut add = |violations: &[Violation], list: fn(&mut RuleSummary) -> &mut Vec<String>| {
        for violation in violations {
            let broken = by_rule
                .entry((kind.to_owned(), violation.rule.clone()))
                .or_default();
            let names = if violation.is_of_related {
                &mut broken.conflicts
            } else {
                list(broken)
            };
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
    };
    add(&result.errors, |broken| &mut broken.denied);
    add(&result.warnings, |broken| &mut broken.warned);
    add(&result.audit_violations, |broken| &mut broken.audited);
}

fn to_text(objects: usize, by_rule: &BTreeMap<(String, String), RuleSummary>) -> String {
    let mut out = String::new();
    for ((kind, rule), broken) in by_rule {
        let _ = writeln!(out, "{kind} {rule}");
        for (what, names) in [
            ("denied", &broken.denied),
            ("warned", &broken.warned),
            ("audited", &broken.audited),
            ("conflicts", &broken.conflicts),
        ] {
            if names.is_empty() {
                continue;
            }
            let named = names
                .iter()
                .take(NAMED)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = names.len().saturating_sub(NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let _ = writeln!(out, "  {what:9} {:>6}  {named}{more}", names.len());
        }
    }
    let denied: std::collections::BTreeSet<_> =
        by_rule.values().flat_map(|broken| &broken.denied).collect();
    let _ = writeln!(
        out,
        "{objects} objects: {} violate {} rules, {} would be denied",
        by_rule
            .values()
            .flat_map(|broken| {
                let RuleSummary {
                    denied,
                    warned,
                    audited,
                    conflicts,
                } = broken;
                [denied, warned, audited, conflicts]
            })
            .flatten()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        by_rule.len(),
        denied.len()
    );
    out
}

fn to_json(
    objects: usize,
    by_rule: &BTreeMap<(String, String), RuleSummary>,
    findings: &[ResolvedFinding],
) -> Value {
    let rules = by_rule.iter().map(|((kind, rule), broken)| {
        json!({
            "kind": kind,
            "rule": rule,
            "denied": broken.denied,
            "warned": broken.warned,
            "audited": broken.audited,
            "conflicts": broken.conflicts,
        })
    });
    json!({
        "objects": objects,
        "rules": rules.collect::<Vec<_>>(),
        "findings": findings::to_json(findings),
    })
}
