//! Registry of operators: the kinds of the program, the installed ones, and their controllers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use clap::ArgMatches;
use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{
    Config, ControllerRegistry, DeletionTimeouts, Metrics, Runnable, Shards, api_resource,
};
use lockstep_shared_validation::{PolicyHandle, Validator, ValidatorRegistry};
use serde_json::Value;

use crate::admission_checks::{CheckOfKind, CheckedKind};
use crate::args::reconciliation::ReconciliationArgs;
use crate::operator::audience::Audience;
use crate::operator::context::OperatorContext;
#[cfg(feature = "dev")]
use crate::operator::dev_service::DevService;
use crate::operator::extension_files::RulesetExtension;
use crate::operator::permissions::{require_declared, rules_of_installed};
use crate::operator::registration::{
    ControllerFactory, KindDefinition, LeaderTaskFactory, Registration,
};
use crate::operator::subcommand::Subcommand;
use crate::operator::wiring::Wiring;

/// All operators of the program, in the order of their registration.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) operators: Vec<Registration>,
    /// Subcommands that belong to no operator.
    pub(crate) subcommands: Vec<Subcommand>,
}

impl Registry {
    /// Compiles the rulesets of all kinds, installed or not, for processes that validate objects of any kind.
    pub(crate) fn validators(&self) -> anyhow::Result<ValidatorRegistry> {
        let mut all = ValidatorRegistry::default();
        for (operator, registered) in self.kinds() {
            all = all.register((registered.compile)(operator.extension.as_ref())?);
        }
        Ok(all)
    }

    /// Returns the rulesets of all kinds, each of which is compiled when it is needed: most processes need few of them.
    pub(crate) fn lazy_validators(&self) -> ValidatorRegistry {
        let rulesets = self
            .kinds()
            .map(|(operator, registered)| (registered.lazy)(operator.extension.as_ref()));
        rulesets.fold(ValidatorRegistry::default(), ValidatorRegistry::register)
    }

    /// Returns all kinds, each with its operator.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&Registration, KindDefinition)> {
        self.operators.iter().flat_map(|operator| {
            let kinds = operator.definition.kinds.iter();
            kinds.map(move |kind| (operator, *kind))
        })
    }

    /// Creates the extensions of all rulesets for the subcommand that runs.
    pub(crate) fn create_extensions(
        &mut self,
        command: &str,
        arguments: &ArgMatches,
    ) -> anyhow::Result<()> {
        for operator in &mut self.operators {
            let extension = operator.definition.extension.as_ref();
            let extension = extension.map(|extension| extension.create(command, arguments));
            if let Some(RulesetExtension { value, files }) = extension.transpose()? {
                operator.extension = Some(value);
                operator.extension_files = Mutex::new(files);
            }
        }
        Ok(())
    }

    /// Reads the files of all extensions, and again when they change. Calls `on_change` when an extension has changed.
    pub(crate) fn watch_extensions(
        &self,
        metrics: &mut prometheus_client::registry::Registry,
        interval: Duration,
        on_change: impl Fn() + Clone + Send + 'static,
    ) {
        for operator in &self.operators {
            let files = operator.extension_files.lock();
            let files = files.unwrap_or_else(PoisonError::into_inner).take();
            if let Some(files) = files {
                files.watch(metrics, interval, on_change.clone());
            }
        }
    }

    /// Returns the kinds that have admission checks.
    pub(crate) fn checked_kinds(&self) -> Vec<CheckedKind> {
        let kinds = self.kinds().filter_map(|(operator, kind)| {
            let is_wanted = operator.definition.admission_check?;
            Some(CheckedKind {
                group: kind.group,
                kind: kind.kind,
                is_wanted,
                annotations: operator.definition.checked_annotations,
            })
        });
        kinds.collect()
    }

    /// Returns the subcommand of an operator, or one that belongs to none.
    pub(crate) fn subcommand(&self, name: &str) -> Option<&Subcommand> {
        let mut subcommands = self
            .operators
            .iter()
            .flat_map(|operator| &operator.definition.subcommands)
            .chain(&self.subcommands);
        subcommands.find(|subcommand| subcommand.name() == name)
    }

    /// Returns the kinds that `is_chosen` accepts, with their compiled rulesets.
    pub(crate) fn select(
        &self,
        is_chosen: impl Fn(&Registration, KindDefinition) -> bool,
    ) -> anyhow::Result<SelectedKinds<'_>> {
        let mut all = ValidatorRegistry::default();
        let mut chosen = Vec::new();
        for (operator, registered) in self.kinds() {
            let extension = operator.extension.as_ref();
            let ruleset = if is_chosen(operator, registered) {
                let ruleset = (registered.compile)(extension)?;
                chosen.push((operator, registered, Arc::clone(&ruleset)));
                ruleset
            } else {
                (registered.lazy)(extension)
            };
            all = all.register(ruleset);
        }
        let selected = SelectedKinds { all, chosen };
        selected.require_namespaced_for_tenants()?;
        Ok(selected)
    }
}

/// The installed kinds with their compiled rulesets.
pub(crate) struct SelectedKinds<'a> {
    /// Rulesets of all kinds, installed or not.
    pub(crate) all: ValidatorRegistry,
    chosen: Vec<(&'a Registration, KindDefinition, Arc<dyn Validator>)>,
}

impl SelectedKinds<'_> {
    pub(crate) fn validators(&self) -> ValidatorRegistry {
        self.validators_if(|_| true)
    }

    /// Returns the validators of the kinds for tenants.
    pub(crate) fn tenant_validators(&self) -> ValidatorRegistry {
        self.validators_if(|kind| kind.audience == Audience::Tenants)
    }

    fn validators_if(&self, is_wanted: impl Fn(KindDefinition) -> bool) -> ValidatorRegistry {
        self.iter()
            .filter(|(kind, _)| is_wanted(*kind))
            .map(|(_, ruleset)| Arc::clone(ruleset))
            .fold(ValidatorRegistry::default(), ValidatorRegistry::register)
    }

    /// Returns an error if a kind for tenants is cluster-scoped: a tenant has rights in namespaces only.
    fn require_namespaced_for_tenants(&self) -> anyhow::Result<()> {
        let for_tenants = self.tenant_validators();
        let mut for_tenants = for_tenants.iter();
        let cluster_scoped =
            for_tenants.find(|ruleset| ruleset.crd()["spec"]["scope"] == "Cluster");
        if let Some(ruleset) = cluster_scoped {
            bail!(
                "the kind {} is cluster-scoped, and is registered for tenants, who have rights in namespaces only; register it \
                 with `Audience::Administrators`, or make it namespaced",
                ruleset.kind()
            );
        }
        Ok(())
    }

    /// Returns the installed kinds with their compiled rulesets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (KindDefinition, &Arc<dyn Validator>)> {
        self.chosen
            .iter()
            .map(|(_, kind, ruleset)| (*kind, ruleset))
    }

    /// Returns a kind that is cluster-scoped or whose operator creates cluster-scoped objects, if any.
    pub(crate) fn cluster_scoped_kind(&self) -> Option<&'static str> {
        let mut chosen = self.chosen.iter();
        let beyond = chosen.find(|(operator, kind, ruleset)| {
            operator.definition.creates_cluster_scoped
                || kind.creates_cluster_scoped
                || ruleset.crd()["spec"]["scope"] == "Cluster"
        });
        beyond.map(|(_, registered, _)| registered.kind)
    }

    /// Returns the API resources of the installed kinds.
    pub(crate) fn api_resources(&self) -> Vec<ApiResource> {
        let chosen = self.chosen.iter();
        chosen
            .map(|(_, _, ruleset)| api_resource(&**ruleset))
            .collect()
    }

    /// Returns the RBAC rules of the operators and kinds, in addition to those for their own kinds. Each occurs once.
    pub(crate) fn rbac_rules(&self) -> Vec<Value> {
        self.rbac_rules_if(|_| true)
    }

    /// Returns those of the RBAC rules that the kinds for tenants and their operators need.
    pub(crate) fn tenant_rbac_rules(&self) -> Vec<Value> {
        self.rbac_rules_if(|kind| kind.audience == Audience::Tenants)
    }

    fn rbac_rules_if(&self, is_wanted: impl Fn(KindDefinition) -> bool) -> Vec<Value> {
        let wanted = || self.chosen.iter().filter(|(_, kind, _)| is_wanted(*kind));
        let of_operators = wanted().flat_map(|(operator, _, _)| &operator.definition.rbac_rules);
        let of_kinds = wanted().flat_map(|(_, kind, _)| (kind.rbac_rules)());
        let mut rules: Vec<Value> = Vec::new();
        for rule in of_operators.cloned().chain(of_kinds) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }

    /// Returns the RBAC rules of the operators in the namespace of the installation.
    pub(crate) fn own_namespace_rules(&self) -> Vec<Value> {
        let operators = self.operators().into_iter();
        let rules = operators.flat_map(|operator| &operator.definition.own_namespace_rules);
        rules.cloned().collect()
    }

    /// Returns the RBAC rules of the admission checks of the operators.
    pub(crate) fn admission_check_rules(&self) -> Vec<Value> {
        let operators = self.operators().into_iter();
        let rules = operators.flat_map(|operator| &operator.definition.admission_check_rules);
        rules.cloned().collect()
    }

    /// Returns the names of the arguments that get the folder of the policy.
    pub(crate) fn policy_folder_args(&self) -> Vec<&'static str> {
        let operators = self.operators().into_iter();
        let names = operators.filter_map(|operator| operator.definition.policy_folder_arg);
        names.collect()
    }

    /// Returns the optional `ConfigMap`s, each with the name of the argument that gets its folder.
    pub(crate) fn config_map_args(&self) -> Vec<(&'static str, &'static str)> {
        let operators = self.operators().into_iter();
        let args = operators.filter_map(|operator| operator.definition.config_map_arg);
        args.collect()
    }

    /// Returns the optional `ConfigMap`s whose data the controller gets as environment variables.
    pub(crate) fn environment_config_maps(&self) -> Vec<&'static str> {
        let operators = self.operators().into_iter();
        let names = operators.filter_map(|operator| operator.definition.environment_config_map);
        names.collect()
    }

    /// Returns true if an operator of the installed kinds has admission checks.
    pub(crate) fn have_admission_checks(&self) -> bool {
        let mut operators = self.operators().into_iter();
        operators.any(|operator| operator.definition.admission_check.is_some())
    }

    /// Returns the services that the command `dev` starts for the installed kinds.
    #[cfg(feature = "dev")]
    pub(crate) fn dev_services(&self) -> impl Iterator<Item = &DevService> {
        let operators = self.operators().into_iter();
        operators.flat_map(|operator| &operator.definition.dev_services)
    }

    /// Returns true if an operator of the installed kinds may create objects on which other controllers work, such as
    /// Deployments. None works on Secrets.
    #[cfg(feature = "dev")]
    pub(crate) fn create_objects(&self) -> bool {
        let rules = self.rbac_rules();
        let is_only_secrets = |rule: &&Value| {
            let mut resources = rule["resources"].as_array().into_iter().flatten();
            rule["resources"].is_array() && resources.all(|it| it == "secrets")
        };
        let verbs = rules
            .iter()
            .filter(|rule| !is_only_secrets(rule))
            .flat_map(|rule| rule["verbs"].as_array().into_iter().flatten());
        verbs
            .into_iter()
            .any(|verb| verb == "create" || verb == "*")
    }

    /// Returns the operators of the installed kinds.
    fn operators(&self) -> Vec<&Registration> {
        let mut operators: Vec<&Registration> = Vec::new();
        for (operator, _, _) in &self.chosen {
            if !operators
                .iter()
                .any(|known| std::ptr::eq(*known, *operator))
            {
                operators.push(operator);
            }
        }
        operators
    }

    /// Returns the ruleset of a kind of this operator if it is installed.
    fn ruleset(&self, operator: &Registration, kind: &str) -> Option<&Arc<dyn Validator>> {
        let mut chosen = self.chosen.iter();
        let found = chosen.find(|(registration, registered, _)| {
            std::ptr::eq(*registration, operator) && registered.kind == kind
        });
        found.map(|(_, _, ruleset)| ruleset)
    }
}

/// The configured operators. They outlive a leadership term of this replica.
pub(crate) struct Operators {
    program: String,
    client: Client,
    deletion_timeouts: DeletionTimeouts,
    config: Config,
    controllers: Vec<(Arc<dyn Validator>, ControllerFactory)>,
    leader_tasks: Vec<LeaderTaskFactory>,
    checks: Vec<CheckOfKind>,
    policy: PolicyHandle,
    /// The watched namespaces; empty for all.
    namespaces: Vec<String>,
}

impl Operators {
    /// Sets up the parts that outlive a leadership term. `matches` are the arguments of the command `controller`. If
    /// `reconciles` is false, there are no controllers, and so they need no permissions.
    pub(crate) async fn new(
        context: OperatorContext,
        reconciles: bool,
        args: &ReconciliationArgs,
        matches: &ArgMatches,
        kinds: &SelectedKinds<'_>,
        policy: PolicyHandle,
    ) -> anyhow::Result<Self> {
        let (mut controllers, mut checks) = (Vec::new(), Vec::new());
        let mut declared = rules_of_installed(&context.installed_kinds);
        declared.extend(kinds.rbac_rules());
        // They grant nothing in other namespaces.
        if context.namespaces == [context.namespace.as_str()] {
            declared.extend(kinds.own_namespace_rules());
        }
        let mut leader_tasks = Vec::new();
        for operator in kinds.operators() {
            let context = context.with_extension(operator.extension.clone());
            let running = (operator.set_up)(matches, context)?.await?;
            leader_tasks.extend(running.leader_tasks);
            let registered = operator.definition.kinds.iter();
            let started = running.controllers.into_iter().zip(running.needed_rules);
            for (registered, (factory, needed_rules)) in registered.zip(started) {
                let Some(ruleset) = kinds.ruleset(operator, registered.kind) else {
                    continue;
                };
                if reconciles {
                    require_declared(registered.kind, &needed_rules, &declared)?;
                }
                controllers.push((Arc::clone(ruleset), factory));
                let check = running.admission_check.iter().map(|check| CheckOfKind {
                    group: registered.group,
                    kind: registered.kind,
                    check: Arc::clone(check),
                });
                checks.extend(check);
            }
        }
        Ok(Self {
            namespaces: context.namespaces,
            program: context.program,
            client: context.client,
            controllers,
            leader_tasks,
            checks,
            policy,
            deletion_timeouts: args.deletion_timeouts()?,
            config: args.config(),
        })
    }

    /// Returns the admission checks, which are served once.
    pub(crate) fn take_checks(&mut self) -> Vec<CheckOfKind> {
        std::mem::take(&mut self.checks)
    }

    /// Creates the controllers for one leadership term: one for each kind, and for each watched namespace if only
    /// some are watched. With shards, they reconcile the objects of the held ones.
    pub(crate) fn controllers(
        &self,
        metrics: &Metrics,
        directory: &ControllerRegistry,
        shards: Option<&Shards>,
    ) -> Vec<Box<dyn Runnable>> {
        let named = self.namespaces.iter().map(|name| Some(name.as_str()));
        let everywhere = self.namespaces.is_empty().then_some(None);
        let wirings = named.chain(everywhere).map(|within| Wiring {
            program: &self.program,
            client: &self.client,
            policy: &self.policy,
            deletion_timeouts: self.deletion_timeouts,
            config: self.config,
            metrics,
            registry: directory,
            shards,
            namespace: within,
        });
        let controllers = wirings.flat_map(|wiring| {
            let controllers = self.controllers.iter();
            controllers.map(move |(ruleset, start)| start(Arc::clone(ruleset), &wiring))
        });
        controllers.collect()
    }

    /// Creates the other tasks of the leader for one leadership term.
    pub(crate) fn leader_tasks(&self) -> Vec<Box<dyn Runnable>> {
        let tasks = self.leader_tasks.iter().filter_map(|create| create());
        tasks.collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};
    use k8s_openapi::api::core::v1::ConfigMap;
    use lockstep_controller::{
        Leadership, OwnedType, ReconcileError, Reconciler, SecretAccess, SyncReconciler,
        SyncRequest, SyncResponse,
    };

    use super::*;
    use crate::operator::Operator;
    use crate::operator::context::OperatorMetrics;
    use crate::operator::test_kinds::Lamp;

    fn lamps_with_config_maps() -> impl Reconciler<Kind = Lamp> {
        let sync = |_: &SyncRequest<'_, Lamp>| Ok::<_, ReconcileError>(SyncResponse::new());
        SyncReconciler::new(sync).owns([OwnedType::namespaced::<ConfigMap>()])
    }

    /// Sets up the controllers of an operator that watch these namespaces, and returns the error.
    async fn error<S: Send + Sync + 'static>(
        operator: Operator<S>,
        reconciles: bool,
        namespaces: &[&str],
    ) -> Option<String> {
        let mut registry = Registry::default();
        registry.operators.push(operator.into());
        let kinds = registry.select(|_, _| true).expect("the rules compile");
        let server = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other(
                "no request is sent",
            ))
        });
        let context = OperatorContext {
            program: "lighting".to_owned(),
            client: Client::new(server, "default"),
            leadership: Leadership::pending(),
            namespace: "system".to_owned(),
            namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
            secret_access: SecretAccess::default(),
            installed_kinds: kinds.api_resources(),
            controllers: ControllerRegistry::default(),
            extension: None,
            metrics: OperatorMetrics::default(),
        };
        let matches = ReconciliationArgs::augment_args(Command::new("controller"));
        let matches = matches.get_matches_from(["controller"]);
        let args = ReconciliationArgs::from_arg_matches(&matches).expect("the defaults");
        let policy = PolicyHandle::default();
        let operators = Operators::new(context, reconciles, &args, &matches, &kinds, policy).await;
        operators.err().map(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_controller_without_a_permission_that_its_reconciler_needs_does_not_start() {
        let rule = || OwnedType::namespaced::<ConfigMap>().rbac_rule();
        let tenants = Audience::Tenants;
        let undeclared = || Operator::new().kind(tenants, |(), _| lamps_with_config_maps());
        let missing = error(undeclared(), true, &[]).await;
        let missing = missing.expect("an error");
        assert!(missing.contains("on configmaps;"), "{missing}");
        assert_eq!(
            error(undeclared(), false, &[]).await,
            None,
            "without controllers"
        );
        let declared = undeclared().rbac_rules([rule()]);
        assert_eq!(error(declared, true, &[]).await, None);
        let of = Operator::of(tenants, lamps_with_config_maps);
        assert_eq!(error(of, true, &[]).await, None);
        // A permission in the namespace of the installation is one for all objects only if no other is watched.
        for (namespaces, suffices) in [
            (vec!["system"], true),
            (vec![], false),
            (vec!["system", "other"], false),
        ] {
            let in_own = undeclared().own_namespace_rules([rule()]);
            let error = error(in_own, true, &namespaces).await;
            assert_eq!(error.is_none(), suffices, "{namespaces:?}: {error:?}");
        }
    }
}
