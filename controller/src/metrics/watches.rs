//! How watches stand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::registered;

/// The state of every watch.
#[derive(Clone)]
pub(crate) struct Watches {
    failures: Family<Labels, Counter>,
    up: Family<Labels, Gauge>,
    down: Arc<Mutex<BTreeMap<Labels, String>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Labels {
    controller: String,
    resource: String,
}

impl Watches {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            failures: registered(
                registry,
                "lockstep_watch_failures",
                "How often a watch broke off or could not begin",
                Family::default(),
            ),
            up: registered(
                registry,
                "lockstep_watch_up",
                "Whether a watch brings what happens: 1 when it does",
                Family::default(),
            ),
            down: Arc::default(),
        }
    }

    /// One of them.
    pub(crate) fn of(&self, controller: &str, resource: &str) -> WatchState {
        let labels = Labels {
            controller: controller.to_owned(),
            resource: resource.to_owned(),
        };
        self.up.get_or_create(&labels).set(0);
        self.down()
            .insert(labels.clone(), "has not yet begun".to_owned());
        WatchState {
            watches: self.clone(),
            labels,
        }
    }

    /// What every watch that is down says.
    pub(crate) fn what_is_down(&self) -> Vec<String> {
        let down = self.down();
        let down = down.iter();
        down.map(
            |(
                Labels {
                    controller,
                    resource,
                },
                why,
            )| { format!("the watch of {controller} on {resource} {why}") },
        )
        .collect()
    }

    fn down(&self) -> MutexGuard<'_, BTreeMap<Labels, String>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of one watch, for as long as there is one.
pub(crate) struct WatchState {
    watches: Watches,
    labels: Labels,
}

impl WatchState {
    pub(crate) fn is_up(&self) {
        self.watches.up.get_or_create(&self.labels).set(1);
        self.watches.down().remove(&self.labels);
    }

    pub(crate) fn is_down(&self, why: String) {
        self.watches.failures.get_or_create(&self.labels).inc();
        self.watches.up.get_or_create(&self.labels).set(0);
        self.watches.down().insert(self.labels.clone(), why);
    }
}

impl Drop for WatchState {
    fn drop(&mut self) {
        self.watches.down().remove(&self.labels);
        self.watches.up.remove(&self.labels);
    }
}
