//! Metrics and state of the watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::limits::WatchLimits;

/// Watches of a process.
///
/// ```
/// use lockstep_watch::Watches;
/// use prometheus_client::registry::Registry;
///
/// let watches = Watches::register(&mut Registry::default());
/// let state = watches.start("lamp", "lamps.example.com");
/// let expected = "the watch of controller lamp on lamps.example.com has not started yet";
/// assert_eq!(watches.disconnected(), [expected]);
/// drop(state);
/// assert!(watches.disconnected().is_empty());
/// ```
#[derive(Clone)]
pub struct Watches {
    failures: Family<Labels, Counter>,
    silences: Family<Labels, Counter>,
    up: Family<Labels, Gauge>,
    down: Arc<Mutex<DisconnectedWatches>>,
    limits: WatchLimits,
}

/// Reasons of the watches that are disconnected, by labels and a number: several watches may be on one type.
#[derive(Default)]
struct DisconnectedWatches {
    watches: BTreeMap<(Labels, u64), String>,
    started: u64,
    /// Number of watches with the same labels.
    running: BTreeMap<Labels, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Labels {
    controller: String,
    resource: String,
}

impl Watches {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let watches = Self {
            failures: Family::default(),
            silences: Family::default(),
            up: Family::default(),
            down: Arc::default(),
            limits: WatchLimits::default(),
        };
        registry.register(
            "lockstep_watch_failures",
            "Total number of times a watch failed or could not start",
            watches.failures.clone(),
        );
        registry.register(
            "lockstep_watch_silences",
            "Total number of times a watch was resumed because nothing had arrived, not even a bookmark",
            watches.silences.clone(),
        );
        registry.register(
            "lockstep_watch_up",
            "1 if a watch is connected, 0 otherwise",
            watches.up.clone(),
        );
        watches
    }

    /// Replaces the time limits of the watches that start later.
    #[must_use]
    pub fn with_limits(mut self, limits: WatchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the state of a new watch.
    #[must_use]
    pub fn start(&self, controller: &str, resource: &str) -> WatchState {
        let labels = Labels {
            controller: controller.to_owned(),
            resource: resource.to_owned(),
        };
        let number = {
            let mut down = self.down.lock();
            down.started += 1;
            *down.running.entry(labels.clone()).or_default() += 1;
            down.started
        };
        // Alerts see an increase only of a counter that exists before.
        drop(self.failures.get_or_create(&labels));
        drop(self.silences.get_or_create(&labels));
        let state = WatchState(Arc::new(RunningWatch {
            watches: self.clone(),
            labels,
            number,
        }));
        state.0.set(Some("has not started yet".to_owned()));
        state
    }

    /// Returns the disconnected watches, with the reasons.
    #[must_use]
    pub fn disconnected(&self) -> Vec<String> {
        let down = self.down.lock();
        let messages = down.watches.iter().map(|((labels, _), why)| {
            format!(
                "the watch of controller {} on {} {why}",
                labels.controller, labels.resource
            )
        });
        messages.collect()
    }
}

/// State of one watch; removed when it is dropped.
pub struct WatchState(Arc<RunningWatch>);

struct RunningWatch {
    watches: Watches,
    labels: Labels,
    number: u64,
}

impl WatchState {
    /// Returns the state of the connection of this watch.
    pub(crate) fn connection(&self) -> Connection {
        Connection {
            watch: Arc::downgrade(&self.0),
            limits: self.0.watches.limits,
        }
    }

    /// Records that the watch is connected.
    pub fn set_up(&self) {
        self.0.set(None);
    }

    /// Records that the watch has failed or cannot start. `why` is the end of a sentence.
    pub fn set_down(&self, why: String) {
        let RunningWatch {
            watches, labels, ..
        } = &*self.0;
        watches.failures.get_or_create(labels).inc();
        self.0.set(Some(why));
    }
}

/// Connection of a watch, which may outlive the watch for a moment.
#[derive(Clone)]
pub(crate) struct Connection {
    watch: Weak<RunningWatch>,
    pub(crate) limits: WatchLimits,
}

impl Connection {
    /// Records that the API server has accepted the watch.
    pub(crate) fn set_up(&self) {
        if let Some(watch) = self.watch.upgrade() {
            watch.set(None);
        }
    }

    /// Records that nothing has arrived for the time limit.
    pub(crate) fn set_silent(&self) {
        let Some(watch) = self.watch.upgrade() else {
            return;
        };
        let (labels, silence) = (&watch.labels, self.limits.silence);
        tracing::debug!(
            controller = labels.controller,
            resource = labels.resource,
            ?silence,
            "nothing has arrived on the watch, not even a bookmark; resuming it on a new connection"
        );
        watch.watches.silences.get_or_create(labels).inc();
        watch.set(Some(format!(
            "is silent: nothing has arrived for {silence:?}, and the API server has not accepted a new connection yet"
        )));
    }
}

impl RunningWatch {
    fn set(&self, why: Option<String>) {
        let mut down = self.watches.down.lock();
        let key = (self.labels.clone(), self.number);
        match why {
            Some(why) => down.watches.insert(key, why),
            None => down.watches.remove(&key),
        };
        self.update_gauge(&down);
    }

    fn update_gauge(&self, down: &DisconnectedWatches) {
        let mut disconnected = down.watches.keys();
        let is_up = !disconnected.any(|(labels, _)| *labels == self.labels);
        let gauge = self.watches.up.get_or_create(&self.labels);
        gauge.set(i64::from(is_up));
    }
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        let mut down = self.watches.down.lock();
        down.watches.remove(&(self.labels.clone(), self.number));
        let running = down.running.entry(self.labels.clone()).or_default();
        *running -= 1;
        if *running == 0 {
            down.running.remove(&self.labels);
            self.watches.up.remove(&self.labels);
        } else {
            self.update_gauge(&down);
        }
    }
}
