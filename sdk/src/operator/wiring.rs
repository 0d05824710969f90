//! Wiring of controllers for one leadership term.

use std::sync::Arc;

use kube::Client;
use lockstep_controller::{
    Config, Controller, ControllerRegistry, DeletionTimeouts, Metrics, Reconciler, Runnable, Shards,
};
use lockstep_shared_validation::{PolicyHandle, Validator};

/// Everything that controllers get from the program, except for their reconciler and validator.
pub(crate) struct Wiring<'a> {
    /// Name of the program.
    pub(crate) program: &'a str,
    pub(crate) client: &'a Client,
    pub(crate) policy: &'a PolicyHandle,
    pub(crate) deletion_timeouts: DeletionTimeouts,
    pub(crate) config: Config,
    pub(crate) metrics: &'a Metrics,
    pub(crate) registry: &'a ControllerRegistry,
    /// Shards whose objects the controllers reconcile; `None` for all objects.
    pub(crate) shards: Option<&'a Shards>,
    /// The only namespace that the controllers watch; `None` for all.
    pub(crate) namespace: Option<&'a str>,
}

impl Wiring<'_> {
    /// Creates the controller of a reconciler.
    pub(crate) fn controller(
        &self,
        operator: impl Reconciler,
        ruleset: Arc<dyn Validator>,
    ) -> Box<dyn Runnable> {
        let run = Controller::new(
            self.program,
            self.client.clone(),
            ruleset,
            operator,
            self.metrics.clone(),
            self.policy.clone(),
        );
        let run = run
            .with_deletion_timeouts(self.deletion_timeouts)
            .with_config(self.config);
        let run = run.register_in(self.registry);
        let run = match self.shards {
            Some(shards) => run.with_shards(shards.clone()),
            None => run,
        };
        Box::new(match self.namespace {
            Some(namespace) => run.namespaced(namespace),
            None => run,
        })
    }
}
