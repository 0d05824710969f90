//! Operators: kinds with their reconcilers, and everything that they add to a program.

pub(crate) mod audience;
pub(crate) mod audit_snapshot;
pub(crate) mod context;
#[cfg(feature = "dev")]
pub(crate) mod dev_service;
pub(crate) mod extension;
pub(crate) mod extension_files;
pub(crate) mod permissions;
pub(crate) mod registration;
pub(crate) mod subcommand;
#[cfg(test)]
pub(crate) mod test_kinds;
pub(crate) mod wiring;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser};
use futures::FutureExt;
use lockstep_controller::{OwnedType, Reconciler, Runnable};
use lockstep_shared_validation::Policy;
use serde_json::Value;

use crate::admission_checks::AdmissionCheck;
use crate::operator::audience::Audience;
use crate::operator::audit_snapshot::{AuditSnapshot, AuditSnapshotDefinition};
use crate::operator::context::OperatorContext;
#[cfg(feature = "dev")]
use crate::operator::dev_service::DevService;
use crate::operator::extension::ExtensionDefinition;
use crate::operator::extension_files::RulesetExtension;
use crate::operator::registration::{
    CheckFn, Definition, KindDefinition, KindStart, LeaderTaskFn, Registration, SetUpFn,
};
use crate::operator::subcommand::Subcommand;

/// An operator: one or several kinds, each with its ruleset and its reconciler.
///
/// `S` is the state that the reconcilers share, for example the client of another system. It is created once and
/// outlives the leadership terms of the replica.
///
/// # Expected flow
///
/// [`Operator::of`] suffices for an operator that needs only the cluster. An operator with arguments of its own or a
/// state starts with [`Operator::with_args`] and adds each [`kind`](Operator::kind). Everything else is optional.
///
/// ```
/// use lockstep_sdk::{Audience, Operator, OperatorContext, anyhow, clap};
/// # use lockstep_sdk::controller::{Reconciler, SyncReconciler, SyncRequest, SyncResponse};
/// # use lockstep_sdk::shared_validation::ValidatedResource;
/// # #[derive(serde::Deserialize)]
/// # struct Greeting {}
/// # impl ValidatedResource for Greeting {
/// #     const GROUP: &'static str = "demo.example.com";
/// #     const VERSION: &'static str = "v1";
/// #     const KIND: &'static str = "Greeting";
/// #     fn crd() -> serde_json::Value { serde_json::json!({}) }
/// #     fn example() -> serde_json::Value { serde_json::json!({}) }
/// # }
/// # fn greetings(_: &str) -> impl Reconciler<Kind = Greeting> + use<> {
/// #     SyncReconciler::new(|_: &SyncRequest<'_, Greeting>| Ok(SyncResponse::new()))
/// # }
///
/// /// Options of the operator.
/// #[derive(clap::Args)]
/// struct GreetingArgs {
///     /// Address of the system that sends greetings.
///     #[arg(long, env = "GREETINGS_URL", default_value = "http://localhost:8000")]
///     greetings_url: String,
/// }
///
/// /// Returns the state of the operator.
/// async fn set_up(args: GreetingArgs, _context: OperatorContext) -> anyhow::Result<String> {
///     Ok(args.greetings_url)
/// }
///
/// let operator = Operator::with_args(set_up)
///     .kind(Audience::Tenants, |url: &String, _context| greetings(url))
///     .environment_config_map("greetings");
/// ```
pub struct Operator<S = ()> {
    definition: Definition,
    set_up: SetUpFn<S>,
    starts: Vec<KindStart<S>>,
    leader_tasks: Vec<LeaderTaskFn<S>>,
    check: Option<CheckFn<S>>,
}

impl Operator {
    /// Creates an operator without kinds, arguments and state.
    #[must_use]
    pub fn new() -> Self {
        Self::from_set_up(
            |command| command,
            Box::new(|_, _| Ok(async { Ok(()) }.boxed())),
        )
    }

    /// Creates an operator of one kind that needs only the cluster. Its RBAC rules are those of the reconciler.
    pub fn of<R: Reconciler>(audience: Audience, reconciler: fn() -> R) -> Self {
        let example = reconciler();
        let operator = Self::new()
            .kind(audience, move |(), _| reconciler())
            .rbac_rules(example.rbac_rules());
        if example.owns().iter().all(OwnedType::is_namespaced) {
            operator
        } else {
            operator.creates_cluster_scoped_objects()
        }
    }
}

impl Default for Operator {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Send + Sync + 'static> Operator<S> {
    /// Creates an operator with arguments of its own, which are added to the command `controller`. `set_up` creates the
    /// state of the operator from them. It is called once, and only if a kind of the operator is installed.
    ///
    /// # Assumptions
    ///
    /// No other operator of the program and no argument of the command `controller` has the same name.
    pub fn with_args<A, F>(set_up: impl Fn(A, OperatorContext) -> F + Send + Sync + 'static) -> Self
    where
        A: Args,
        F: Future<Output = anyhow::Result<S>> + Send + 'static,
    {
        Self::from_set_up(
            A::augment_args,
            Box::new(move |matches, context| {
                let args = A::from_arg_matches(matches)?;
                Ok(set_up(args, context).boxed())
            }),
        )
    }

    fn from_set_up(add_arguments: fn(clap::Command) -> clap::Command, set_up: SetUpFn<S>) -> Self {
        Self {
            definition: Definition {
                kinds: Vec::new(),
                rbac_rules: Vec::new(),
                own_namespace_rules: Vec::new(),
                admission_check_rules: Vec::new(),
                by_default: true,
                creates_cluster_scoped: false,
                add_arguments,
                subcommands: Vec::new(),
                extension: None,
                policy_folder_arg: None,
                config_map_arg: None,
                environment_config_map: None,
                audit_snapshot: None,
                admission_check: None,
                checked_annotations: &[],
                #[cfg(feature = "dev")]
                dev_services: Vec::new(),
            },
            set_up,
            starts: Vec::new(),
            leader_tasks: Vec::new(),
            check: None,
        }
    }

    /// Adds a kind for an audience, with the function that creates its reconciler. The function is called once at the start, and
    /// then in each leadership term for each watched namespace, so it must have no side effects.
    ///
    /// The manifests contain only the permissions on the kind itself: add those on owned and watched types with
    /// [`rbac_rules`](Self::rbac_rules). The program does not start if one of them is missing.
    #[must_use]
    pub fn kind<R: Reconciler>(
        mut self,
        audience: Audience,
        reconciler: impl Fn(&S, &OperatorContext) -> R + Send + Sync + 'static,
    ) -> Self {
        self.definition
            .kinds
            .push(KindDefinition::new::<R>(audience));
        let reconciler = Arc::new(reconciler);
        let of_example = Arc::clone(&reconciler);
        self.starts.push(KindStart {
            start: Arc::new(move |state, context, ruleset, wiring| {
                wiring.controller(reconciler(state, context), ruleset)
            }),
            needed_rules: Arc::new(move |state, context| of_example(state, context).rbac_rules()),
        });
        self
    }

    /// Adds a kind whose objects own objects of these types. `rbac_rules` returns all RBAC rules that it needs in addition to
    /// those of its own kind, as `PolicyRule`s; they are granted only where this kind is installed.
    #[must_use]
    pub fn kind_that_owns<R: Reconciler>(
        self,
        audience: Audience,
        types: &[OwnedType],
        rbac_rules: fn() -> Vec<Value>,
        reconciler: impl Fn(&S, &OperatorContext) -> R + Send + Sync + 'static,
    ) -> Self {
        let mut operator = self.kind(audience, reconciler);
        if let Some(kind) = operator.definition.kinds.last_mut() {
            kind.rbac_rules = rbac_rules;
            kind.creates_cluster_scoped = !types.iter().all(OwnedType::is_namespaced);
        }
        operator
    }

    /// Adds RBAC rules that the operator needs besides those for its own kinds, as `PolicyRule`s.
    #[must_use]
    pub fn rbac_rules(mut self, rules: impl IntoIterator<Item = Value>) -> Self {
        self.definition.rbac_rules.extend(rules);
        self
    }

    /// Adds RBAC rules that the operator needs in the namespace of the installation only, as `PolicyRule`s.
    #[must_use]
    pub fn own_namespace_rules(mut self, rules: impl IntoIterator<Item = Value>) -> Self {
        self.definition.own_namespace_rules.extend(rules);
        self
    }

    /// Adds RBAC rules that the [admission check](Self::admission_check) needs, as `PolicyRule`s. They are granted in an
    /// installation of the webhook without controllers; [`Operator::rbac_rules`] have to contain them, too.
    #[must_use]
    pub fn admission_check_rules(mut self, rules: impl IntoIterator<Item = Value>) -> Self {
        self.definition.admission_check_rules.extend(rules);
        self
    }

    /// Excludes the kinds from those that are installed by default: `--kinds` must name them.
    #[must_use]
    pub fn only_when_named(mut self) -> Self {
        self.definition.by_default = false;
        self
    }

    /// Declares that the operator creates cluster-scoped objects. It cannot be limited to namespaces then.
    #[must_use]
    pub fn creates_cluster_scoped_objects(mut self) -> Self {
        self.definition.creates_cluster_scoped = true;
        self
    }

    /// Adds a subcommand to the program. The parser sets its name, help and arguments.
    #[must_use]
    pub fn subcommand<A: Parser + 'static>(mut self, run: fn(&A) -> ExitCode) -> Self {
        self.definition.subcommands.push(Subcommand::new(run));
        self
    }

    /// Sets a function that creates the value that the Rust rules of all kinds of this operator read, see
    /// [`Ruleset::with_extension`](lockstep_shared_validation::Ruleset::with_extension). It is called once, with its own
    /// arguments and the name of the subcommand that runs. Every subcommand that validates objects has the arguments:
    /// `check`, `webhook`, `controller` and `audit`. Others get their default values.
    ///
    /// # Assumptions
    ///
    /// No other argument of these subcommands has the same name, and no argument is required.
    #[must_use]
    pub fn ruleset_extension<A: Args>(
        mut self,
        create: impl Fn(&A, &str) -> anyhow::Result<RulesetExtension> + Send + Sync + 'static,
    ) -> Self {
        self.definition.extension = Some(ExtensionDefinition {
            add_arguments: A::augment_args,
            create: Box::new(move |command, arguments| {
                create(&A::from_arg_matches(arguments)?, command)
            }),
        });
        self
    }

    /// Sets the name of an argument of the [extension](Self::ruleset_extension), such as `--more-rules`, that gets the folder
    /// of the policy in installations: the `ConfigMap` with the policy can have other files for the operator.
    #[must_use]
    pub fn policy_folder_arg(mut self, name: &'static str) -> Self {
        self.definition.policy_folder_arg = Some(name);
        self
    }

    /// Sets an optional `ConfigMap` in the namespace of the installation, and the name of an argument of the
    /// [extension](Self::ruleset_extension) that gets the folder where both containers mount it. The argument must accept
    /// several values.
    #[must_use]
    pub fn config_map_arg(mut self, config_map: &'static str, name: &'static str) -> Self {
        self.definition.config_map_arg = Some((config_map, name));
        self
    }

    /// Sets an optional `ConfigMap` in the namespace of the installation. The controller gets its data as environment
    /// variables, such as the address of the system that the operator manages.
    #[must_use]
    pub fn environment_config_map(mut self, name: &'static str) -> Self {
        self.definition.environment_config_map = Some(name);
        self
    }

    /// Sets the function that creates the snapshot from which `audit` takes the related objects of the kinds. It is called with
    /// its own arguments, which are added to the command `audit`; `()` has none.
    #[must_use]
    pub fn audit_snapshot<A, T>(mut self, create: fn(A) -> T) -> Self
    where
        A: Args + 'static,
        T: AuditSnapshot + 'static,
    {
        self.definition.audit_snapshot = Some(AuditSnapshotDefinition::new(create));
        self
    }

    /// Sets a check that the webhook asks the controller in its Pod for. `is_wanted` returns true if the policy demands it for
    /// a kind of this operator; `create` is called once.
    #[must_use]
    pub fn admission_check<C: AdmissionCheck>(
        mut self,
        is_wanted: fn(&str, &Policy) -> bool,
        create: impl Fn(&S, &OperatorContext) -> C + Send + Sync + 'static,
    ) -> Self {
        self.definition.admission_check = Some(is_wanted);
        self.check = Some(Arc::new(move |state, context| {
            Arc::new(create(state, context))
        }));
        self
    }

    /// Restricts the [admission check](Self::admission_check) to objects that have one of these annotations, or had one before
    /// an update. The webhook does not ask the controller about others.
    #[must_use]
    pub fn checked_annotations(mut self, annotations: &'static [&'static str]) -> Self {
        self.definition.checked_annotations = annotations;
        self
    }

    /// Adds a task that runs beside the controllers while this replica leads, such as the receiver of the events of another
    /// system. `create` is called for each leadership term; `None` adds no task.
    ///
    /// # Assumptions
    ///
    /// The task ends soon after its signal turns true: the lease is not released before. It must not end earlier
    /// because of an error.
    #[must_use]
    pub fn leader_task<T: Runnable + 'static>(
        mut self,
        create: impl Fn(&S, &OperatorContext) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        self.leader_tasks.push(Arc::new(move |state, context| {
            let task = create(state, context)?;
            Some(Box::new(task))
        }));
        self
    }

    /// Adds a service that the command `dev` starts for the operator.
    #[cfg(feature = "dev")]
    #[must_use]
    pub fn dev_service(mut self, service: DevService) -> Self {
        self.definition.dev_services.push(service);
        self
    }
}

impl<S: Send + Sync + 'static> From<Operator<S>> for Registration {
    fn from(operator: Operator<S>) -> Self {
        Self::new(
            operator.definition,
            operator.set_up,
            operator.starts,
            operator.leader_tasks,
            operator.check,
        )
    }
}
