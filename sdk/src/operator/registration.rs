//! Registered operators: operators whose state has any type.

use std::sync::{Arc, Mutex};

use anyhow::Context;
use clap::{ArgMatches, Command};
use futures::FutureExt;
use futures::future::BoxFuture;
use lockstep_controller::{DeletionEffect, FinalizeRequest, Reconciler, Runnable};
use lockstep_shared_validation::{Ruleset, ValidatedResource, Validator};
use serde_json::Value;

use crate::admission_checks::{AdmissionCheck, IsWanted};
use crate::operator::audience::Audience;
use crate::operator::audit_snapshot::AuditSnapshotDefinition;
use crate::operator::context::OperatorContext;
#[cfg(feature = "dev")]
use crate::operator::dev_service::DevService;
use crate::operator::extension::ExtensionDefinition;
use crate::operator::extension_files::Extension;
use crate::operator::extension_files::ExtensionFiles;
use crate::operator::subcommand::Subcommand;
use crate::operator::wiring::Wiring;

/// The part of an operator that does not depend on the type of its state.
pub(crate) struct Definition {
    pub(crate) kinds: Vec<KindDefinition>,
    /// RBAC rules of the operator, in addition to those for its own kinds.
    pub(crate) rbac_rules: Vec<Value>,
    /// RBAC rules of the operator in the namespace of the installation.
    pub(crate) own_namespace_rules: Vec<Value>,
    /// RBAC rules of the admission check in an installation without controllers.
    pub(crate) admission_check_rules: Vec<Value>,
    /// If true, the kinds are installed by default; otherwise, only if they are named.
    pub(crate) by_default: bool,
    /// If true, the operator creates cluster-scoped objects.
    pub(crate) creates_cluster_scoped: bool,
    /// Adds the arguments of the operator to the command `controller`.
    pub(crate) add_arguments: fn(Command) -> Command,
    pub(crate) subcommands: Vec<Subcommand>,
    /// Extension of the rulesets.
    pub(crate) extension: Option<ExtensionDefinition>,
    /// Name of an argument of the extension that gets the folder of the policy.
    pub(crate) policy_folder_arg: Option<&'static str>,
    /// Name of an optional `ConfigMap`, and of an argument of the extension that gets its folder.
    pub(crate) config_map_arg: Option<(&'static str, &'static str)>,
    /// Name of an optional `ConfigMap` whose data the controller gets as environment variables.
    pub(crate) environment_config_map: Option<&'static str>,
    /// Snapshot of the command `audit`.
    pub(crate) audit_snapshot: Option<AuditSnapshotDefinition>,
    /// Returns true if a policy demands the admission checks of a kind.
    pub(crate) admission_check: Option<IsWanted>,
    /// Annotations that the admission checks are about; empty if they are about all objects.
    pub(crate) checked_annotations: &'static [&'static str],
    #[cfg(feature = "dev")]
    pub(crate) dev_services: Vec<DevService>,
}

/// Describes what the deletion of an object does to the resources outside the cluster.
pub(crate) type DeletionEffectFn = fn(&FinalizeRequest<'_>) -> Option<DeletionEffect>;

/// Kind, with the functions that need no running controller.
#[derive(Clone, Copy)]
pub(crate) struct KindDefinition {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) audience: Audience,
    pub(crate) compile: fn(Option<&Extension>) -> anyhow::Result<Arc<dyn Validator>>,
    /// Returns the ruleset, which is compiled when it is needed.
    pub(crate) lazy: fn(Option<&Extension>) -> Arc<dyn Validator>,
    pub(crate) deletion_effect: DeletionEffectFn,
    /// Returns the RBAC rules of this kind, in addition to those of the operator.
    pub(crate) rbac_rules: fn() -> Vec<Value>,
    /// If true, its objects own cluster-scoped objects.
    pub(crate) creates_cluster_scoped: bool,
}

impl KindDefinition {
    pub(crate) fn new<R: Reconciler>(audience: Audience) -> Self {
        Self {
            group: R::Kind::GROUP,
            kind: R::Kind::KIND,
            audience,
            compile: compile::<R::Kind>,
            lazy: lazy::<R::Kind>,
            deletion_effect: R::deletion_effect,
            rbac_rules: Vec::new,
            creates_cluster_scoped: false,
        }
    }
}

fn compile<K: ValidatedResource>(
    extension: Option<&Extension>,
) -> anyhow::Result<Arc<dyn Validator>> {
    let ruleset = Ruleset::<K>::compile();
    let ruleset = ruleset.with_context(|| format!("cannot compile the rules of {}", K::KIND))?;
    Ok(with_extension(ruleset, extension))
}

fn lazy<K: ValidatedResource>(extension: Option<&Extension>) -> Arc<dyn Validator> {
    with_extension(Ruleset::<K>::lazy(), extension)
}

fn with_extension<K: ValidatedResource>(
    ruleset: Ruleset<K>,
    extension: Option<&Extension>,
) -> Arc<dyn Validator> {
    Arc::new(match extension {
        Some(extension) => ruleset.with_extension(Arc::clone(extension)),
        None => ruleset,
    })
}

/// Sets up an operator with its arguments and returns its state.
pub(crate) type SetUpFn<S> = Box<
    dyn Fn(&ArgMatches, OperatorContext) -> anyhow::Result<BoxFuture<'static, anyhow::Result<S>>>
        + Send
        + Sync,
>;

/// Creates the controller of a kind from the state of its operator.
pub(crate) type StartFn<S> = Arc<
    dyn Fn(&S, &OperatorContext, Arc<dyn Validator>, &Wiring<'_>) -> Box<dyn Runnable>
        + Send
        + Sync,
>;

/// Returns the RBAC rules that the reconciler of a kind needs, from the state of its operator.
pub(crate) type NeededRulesFn<S> = Arc<dyn Fn(&S, &OperatorContext) -> Vec<Value> + Send + Sync>;

/// Functions of a kind that take the state of its operator.
pub(crate) struct KindStart<S> {
    pub(crate) start: StartFn<S>,
    pub(crate) needed_rules: NeededRulesFn<S>,
}

impl<S> Clone for KindStart<S> {
    fn clone(&self) -> Self {
        Self {
            start: Arc::clone(&self.start),
            needed_rules: Arc::clone(&self.needed_rules),
        }
    }
}

/// Creates the admission check of an operator from its state.
pub(crate) type CheckFn<S> =
    Arc<dyn Fn(&S, &OperatorContext) -> Arc<dyn AdmissionCheck> + Send + Sync>;

/// Creates a task of the leader from the state of its operator.
pub(crate) type LeaderTaskFn<S> =
    Arc<dyn Fn(&S, &OperatorContext) -> Option<Box<dyn Runnable>> + Send + Sync>;

/// Creates a task of the leader, once its operator is set up.
pub(crate) type LeaderTaskFactory = Box<dyn Fn() -> Option<Box<dyn Runnable>> + Send + Sync>;

/// Creates the controller of a kind, once its operator is set up.
pub(crate) type ControllerFactory =
    Box<dyn Fn(Arc<dyn Validator>, &Wiring<'_>) -> Box<dyn Runnable> + Send + Sync>;

/// Operator that is set up.
pub(crate) struct RunningOperator {
    /// Factories of its controllers, in the order of its kinds.
    pub(crate) controllers: Vec<ControllerFactory>,
    /// RBAC rules that the reconcilers need, in the same order.
    pub(crate) needed_rules: Vec<Vec<Value>>,
    pub(crate) leader_tasks: Vec<LeaderTaskFactory>,
    pub(crate) admission_check: Option<Arc<dyn AdmissionCheck>>,
}

/// An operator as the program stores it.
pub(crate) struct Registration {
    pub(crate) definition: Definition,
    /// Extension of the rulesets, once the subcommand is known.
    pub(crate) extension: Option<Extension>,
    /// Files of the extension, until they are watched.
    pub(crate) extension_files: Mutex<Option<ExtensionFiles>>,
    /// Sets up the operator.
    pub(crate) set_up: SetUpFn<RunningOperator>,
}

impl Registration {
    pub(crate) fn new<S: Send + Sync + 'static>(
        definition: Definition,
        set_up: SetUpFn<S>,
        starts: Vec<KindStart<S>>,
        leader_tasks: Vec<LeaderTaskFn<S>>,
        check: Option<CheckFn<S>>,
    ) -> Self {
        Self {
            definition,
            extension: None,
            extension_files: Mutex::default(),
            set_up: Box::new(move |matches, context| {
                let state = set_up(matches, context.clone())?;
                let (starts, check) = (starts.clone(), check.clone());
                let tasks = leader_tasks.clone();
                Ok(
                    async move { Ok(running(state.await?, &context, starts, tasks, check)) }
                        .boxed(),
                )
            }),
        }
    }
}

fn running<S: Send + Sync + 'static>(
    state: S,
    context: &OperatorContext,
    starts: Vec<KindStart<S>>,
    leader_tasks: Vec<LeaderTaskFn<S>>,
    check: Option<CheckFn<S>>,
) -> RunningOperator {
    let state = Arc::new(state);
    let admission_check = check.map(|check| check(&state, context));
    let needed_rules = starts.iter();
    let needed_rules = needed_rules.map(|kind| (kind.needed_rules)(&state, context));
    let needed_rules = needed_rules.collect();
    let controllers = starts.into_iter().map(|kind| -> ControllerFactory {
        let (state, context) = (Arc::clone(&state), context.clone());
        Box::new(move |ruleset, wiring| (kind.start)(&state, &context, ruleset, wiring))
    });
    let leader_tasks = leader_tasks.into_iter().map(|create| -> LeaderTaskFactory {
        let (state, context) = (Arc::clone(&state), context.clone());
        Box::new(move || create(&state, &context))
    });
    RunningOperator {
        controllers: controllers.collect(),
        needed_rules,
        leader_tasks: leader_tasks.collect(),
        admission_check,
    }
}
