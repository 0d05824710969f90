//! Metrics and state of the watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::registration::registered;

/// State of all watches.
#[derive(Clone)]
pub(crate) struct Watches {
    failures: Family<Labels, Counter>,
    up: Family<Labels, Gauge>,
    down: Arc<Mutex<DisconnectedWatches>>,
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
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            failures: registered(
                registry,
                "lockstep_watch_failures",
                "Total number of times a watch failed or could not start",
                Family::default(),
            ),
            up: registered(
                registry,
                "lockstep_watch_up",
                "1 if a watch is connected, 0 otherwise",
                Family::default(),
            ),
            down: Arc::default(),
        }
    }

    /// Returns the state of a new watch.
    pub(crate) fn of(&self, controller: &str, resource: &str) -> WatchState {
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
        let state = WatchState {
            watches: self.clone(),
            labels,
            number,
        };
        state.set(Some("has not started yet".to_owned()));
        state
    }

    /// Returns the disconnected watches, with the reasons.
    pub(crate) fn disconnected(&self) -> Vec<String> {
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
pub(crate) struct WatchState {
    watches: Watches,
    labels: Labels,
    number: u64,
}

impl WatchState {
    pub(crate) fn set_up(&self) {
        self.set(None);
    }

    pub(crate) fn set_down(&self, why: String) {
        self.watches.failures.get_or_create(&self.labels).inc();
        self.set(Some(why));
    }

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

impl Drop for WatchState {
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
