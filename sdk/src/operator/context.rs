//! Context of an operator's controllers.

use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{ControllerRegistry, Leadership, SecretAccess};
use prometheus_client::registry::{Metric, Registry};

use crate::operator::extension_files::Extension;

/// The parts of the running program that an operator can use.
///
/// # Guarantees
///
/// Except for the extension, which is the one of the operator, the context is the same for all kinds of all operators, and for
/// every leadership term of this replica.
///
/// ```
/// use lockstep_sdk::{OperatorContext, anyhow, clap};
/// use prometheus_client::metrics::counter::Counter;
///
/// /// Options of the operator.
/// #[derive(clap::Args)]
/// struct GreetingArgs {}
///
/// /// State of the operator.
/// struct State {
///     sent: Counter,
///     reads_nodes: bool,
/// }
///
/// async fn set_up(_args: GreetingArgs, context: OperatorContext) -> anyhow::Result<State> {
///     Ok(State {
///         sent: context.register_metric("greetings_sent", "Total number of greetings", Counter::default()),
///         // With Roles instead of ClusterRoles, it may not.
///         reads_nodes: context.namespaces.is_empty(),
///     })
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct OperatorContext {
    /// Name of the program. It is the field manager of what the controllers write.
    pub program: String,
    /// Client of the API server. Its calls are limited by `--kube-api-qps`.
    pub client: Client,
    /// Time until which this replica is certain to be the only one that reconciles the object. Check it before each write to
    /// another system, in the task of the reconciliation: with `--shards` it is the time of the object's shard.
    pub leadership: Leadership,
    /// Namespace of the installation.
    pub namespace: String,
    /// The watched namespaces; empty for all.
    pub namespaces: Vec<String>,
    /// Names by which an administrator grants the rights on the Secrets of a namespace.
    pub secret_access: SecretAccess,
    /// The installed kinds of all operators.
    pub installed_kinds: Vec<ApiResource>,
    /// The running controllers. An operator enqueues objects there that wait for something that no watch reports.
    pub controllers: ControllerRegistry,
    /// Extension of the rulesets of the operator.
    pub(crate) extension: Option<Extension>,
    pub(crate) metrics: OperatorMetrics,
}

impl OperatorContext {
    /// Returns the [extension](crate::Operator::ruleset_extension) of the rulesets of the operator, if it has one of this
    /// type.
    #[must_use]
    pub fn ruleset_extension<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let extension = self.extension.clone()?;
        extension.downcast().ok()
    }

    pub(crate) fn with_extension(&self, extension: Option<Extension>) -> Self {
        Self {
            extension,
            ..self.clone()
        }
    }

    /// Registers a metric of the operator and returns it. The controller serves it at `/metrics`. Call this during
    /// the set-up of the operator: a metric that is registered later is not served.
    pub fn register_metric<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        let mut registry = self
            .metrics
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        registry.register(name, help, metric.clone());
        metric
    }
}

/// Registry to which the program and its operators add their metrics while they are set up.
#[derive(Clone, Default)]
pub(crate) struct OperatorMetrics(Arc<Mutex<Registry>>);

impl OperatorMetrics {
    pub(crate) fn new(registry: Registry) -> Self {
        Self(Arc::new(Mutex::new(registry)))
    }

    /// Returns the registry, which is complete.
    pub(crate) fn take(&self) -> Registry {
        let mut registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *registry)
    }
}
