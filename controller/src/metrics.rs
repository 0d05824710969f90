//! Prometheus metrics of controllers, with controller-runtime's names where these exist.

mod child_writes;
mod client;
mod in_progress;
mod object_gauge;
mod queue;
mod registration;
mod stalled;
mod threshold_gauge;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use lockstep_shared_validation::ValidationResult;
use lockstep_watch::{WatchLimits, WatchState, Watches};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use crate::metrics::client::ClientMetrics;
pub use crate::metrics::object_gauge::ObjectGauge;
pub(crate) use crate::metrics::queue::QueueMetrics;
use crate::metrics::queue::Queues;
use crate::metrics::registration::registered;
use crate::metrics::stalled::StalledObjects;
pub(crate) use crate::metrics::threshold_gauge::ThresholdGauge;
pub(crate) use child_writes::ChildWrites;

/// Prometheus metrics of all controllers.
///
/// ```
/// use lockstep_controller::Metrics;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// let metrics = Metrics::register(&mut registry);
/// assert!(metrics.disconnected_watches().is_empty());
/// ```
#[derive(Clone)]
pub struct Metrics {
    reconciles: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    validations: Family<ControllerLabels, Counter>,
    active: Family<ControllerLabels, Gauge>,
    at_most: Family<ControllerLabels, Gauge>,
    duration: Family<ControllerLabels, Histogram>,
    watches: Watches,
    queues: Queues,
    pub(crate) child_writes: ChildWrites,
    pub(crate) violations: Family<ViolationLabels, Counter>,
    pub(crate) violating_objects: ViolatingObjects,
    pub(crate) terminating: ThresholdGauge,
    pub(crate) failing: ThresholdGauge,
    pub(crate) stalled: StalledObjects,
}

/// Rules that the stored objects violate, whatever the policy does about it.
#[derive(Clone, Default)]
pub(crate) struct ViolatingObjects {
    broken: Family<ViolatingObjectLabels, Gauge>,
    by_object: Arc<Mutex<HashMap<String, BTreeSet<ViolatingObjectLabels>>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub(crate) struct ViolatingObjectLabels {
    kind: String,
    rule: String,
}

impl ViolatingObjects {
    /// Replaces the violated rules of an object by those of a validation result.
    pub(crate) fn set(&self, kind: &str, uid: &str, validation: &ValidationResult) {
        let all = validation
            .errors
            .iter()
            .chain(&validation.warnings)
            .chain(&validation.audit_violations);
        self.set_rules(kind, uid, all.map(|violation| violation.rule.clone()));
    }

    /// Replaces the violated rules of an object by the rules of these ids.
    pub(crate) fn set_rules(&self, kind: &str, uid: &str, rules: impl Iterator<Item = String>) {
        let labels = rules.map(|rule| ViolatingObjectLabels {
            kind: kind.to_owned(),
            rule,
        });
        self.replace(uid, labels.collect());
    }

    /// Removes an object that no longer exists.
    pub(crate) fn forget(&self, uid: &str) {
        self.replace(uid, BTreeSet::new());
    }

    /// Removes all objects.
    pub(crate) fn clear(&self) {
        self.by_object.lock().clear();
        self.broken.clear();
    }

    fn replace(&self, uid: &str, now: BTreeSet<ViolatingObjectLabels>) {
        let mut by_object = self.by_object.lock();
        let before = by_object.remove(uid).unwrap_or_default();
        for labels in before.difference(&now) {
            self.broken.get_or_create(labels).dec();
        }
        for labels in now.difference(&before) {
            self.broken.get_or_create(labels).inc();
        }
        if !now.is_empty() {
            by_object.insert(uid.to_owned(), now);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ViolationLabels {
    pub(crate) kind: String,
    pub(crate) rule: String,
    pub(crate) component: &'static str,
}

const BUCKETS_SECONDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

impl Default for Metrics {
    /// Returns metrics that nothing exports, for tests.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let violating_objects = ViolatingObjects::default();
        registered(
            registry,
            "lockstep_rule_violating_objects",
            "Number of stored objects that violate a rule, whatever its policy does about it",
            violating_objects.broken.clone(),
        );
        let histogram = || Histogram::new(BUCKETS_SECONDS);
        Self {
            reconciles: registered(
                registry,
                "controller_runtime_reconcile",
                "Total number of reconciliations by result",
                Family::default(),
            ),
            errors: registered(
                registry,
                "controller_runtime_reconcile_errors",
                "Total number of reconciliations that failed",
                Family::default(),
            ),
            active: registered(
                registry,
                "controller_runtime_active_workers",
                "Number of reconciliations in progress",
                Family::default(),
            ),
            at_most: registered(
                registry,
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciliations",
                Family::default(),
            ),
            panics: registered(
                registry,
                "controller_runtime_reconcile_panics",
                "Total number of reconciliations that panicked",
                Family::default(),
            ),
            watches: Watches::register(registry),
            duration: registered(
                registry,
                "controller_runtime_reconcile_time_seconds",
                "Duration of a reconciliation",
                Family::new_with_constructor(histogram as fn() -> Histogram),
            ),
            validations: registered(
                registry,
                "lockstep_controller_validations",
                "Total number of validations; an object whose status is current need not be validated again",
                Family::default(),
            ),
            violations: registered(
                registry,
                "lockstep_rule_violations",
                "Total number of rule violations by kind, rule and component",
                Family::default(),
            ),
            queues: Queues::register(registry),
            child_writes: ChildWrites::register(registry),
            violating_objects,
            terminating: ThresholdGauge::register(&threshold_gauge::TERMINATING, registry),
            failing: ThresholdGauge::register(&threshold_gauge::FAILING, registry),
            stalled: StalledObjects::register(registry),
        }
    }

    /// Returns the metrics of one controller's queue.
    pub(crate) fn queue(&self, controller: &str) -> QueueMetrics {
        self.queues.of(controller)
    }

    /// Counts a reconciliation.
    pub(crate) fn reconciled(&self, controller: &str, result: &'static str, took: Duration) {
        let labels = ResultLabels {
            controller: controller.to_owned(),
            result,
        };
        self.reconciles.get_or_create(&labels).inc();
        let errors = self.errors.get_or_create_owned(&labels_of(controller));
        errors.inc_by(u64::from(result == "error"));
        let duration = self.duration.get_or_create_owned(&labels_of(controller));
        duration.observe(took.as_secs_f64());
    }

    /// Sets the maximum number of concurrent reconciliations, and starts the counters of a controller: alerts see an
    /// increase only of a counter that exists before.
    pub(crate) fn set_max_concurrent_reconciles(&self, controller: &str, workers: usize) {
        let at_most = self.at_most.get_or_create_owned(&labels_of(controller));
        at_most.set(i64::try_from(workers).unwrap_or(i64::MAX));
        drop(self.panics.get_or_create(&labels_of(controller)));
        drop(self.errors.get_or_create(&labels_of(controller)));
    }

    /// Counts a reconciliation as in progress for as long as the returned value exists.
    pub(crate) fn start_worker(&self, controller: &str) -> ActiveWorker {
        let active = self.active.get_or_create_owned(&labels_of(controller));
        active.inc();
        ActiveWorker(active)
    }

    /// Counts a validation.
    pub(crate) fn validated(&self, controller: &str) {
        self.validations.get_or_create(&labels_of(controller)).inc();
    }

    /// Counts a reconciliation that panicked.
    pub(crate) fn panicked(&self, controller: &str) {
        self.panics.get_or_create(&labels_of(controller)).inc();
    }

    /// Returns the state of one watch.
    pub(crate) fn watch(&self, controller: &str, resource: &str) -> WatchState {
        self.watches.start(controller, resource)
    }

    /// Returns the watches of all controllers. Other watches of the process can be added to them.
    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    /// Replaces the time limits of the watches that start later.
    #[must_use]
    pub fn with_watch_limits(mut self, limits: WatchLimits) -> Self {
        self.watches = self.watches.with_limits(limits);
        self
    }

    /// Returns the watches that are not connected, with the reasons.
    pub fn disconnected_watches(&self) -> Vec<String> {
        self.watches.disconnected()
    }
}

/// Reconciliation in progress.
pub(crate) struct ActiveWorker(Gauge);

impl Drop for ActiveWorker {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn labels_of(controller: &str) -> ControllerLabels {
    ControllerLabels {
        controller: controller.to_owned(),
    }
}
