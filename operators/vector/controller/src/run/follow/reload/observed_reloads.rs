//! Reloads of a workload, as a reconciliation sees and reports them.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use lockstep_controller::{
    ControllerRegistry, OperatorCondition, OperatorEvent, ReconcileTrigger, SyncRequest,
};
use lockstep_vector_api::{Catalogue, ComponentKind, NotLoaded, RunStatus, Workload, is_kaasops};
use lockstep_vector_assembly::Assembly;
use serde_json::Value;

use crate::owned::{self, Publication};
use crate::run::check::pods::shown;
use crate::run::follow::loading::Loading;
use crate::run::follow::reload::eviction::Evictions;
use crate::run::follow::reload::metrics::{MeasuredWorkload, WorkloadPods};
use crate::run::follow::reload::observer::{Reloads, Target};
use crate::run::follow::reload::texts;
use crate::run::names::Names;
use lockstep_vector_api::WorkloadKind;

/// Observations and evictions of all workloads of a kind.
pub(crate) struct ObservedReloads {
    client: Client,
    reloads: Reloads,
    evictions: Evictions,
    metrics: WorkloadPods,
}

/// Report of the reloads of a workload.
pub(crate) struct ReloadReport {
    /// Pods that have loaded the configuration, and those that have not. None if what is reported stays.
    pub(crate) loaded: Option<Loaded>,
    pub(crate) condition: Option<OperatorCondition>,
    pub(crate) event: Option<OperatorEvent>,
    pub(crate) loading: Loading,
    /// Time until a Pod may be evicted.
    pub(crate) next: Option<Duration>,
}

/// Pods that have loaded the published configuration. Empty if that is not known.
#[derive(Default)]
pub(crate) struct Loaded {
    /// Their number, of all that should.
    pub(crate) pods: Option<String>,
    pub(crate) not_loaded: Option<NotLoaded>,
}

impl ReloadReport {
    fn none(loading: Loading) -> Self {
        Self {
            loaded: Some(Loaded::default()),
            condition: None,
            event: None,
            loading,
            next: None,
        }
    }
}

/// Types of source and sink by which Vector tells it. An image may be a build without them.
const COMPONENTS: [(ComponentKind, &str); 2] = [
    (ComponentKind::Source, "demo_logs"),
    (ComponentKind::Sink, "console"),
];

/// Returns true if Vector is to tell which configuration it runs.
pub(crate) fn is_observed<K: WorkloadKind>(
    request: &SyncRequest<'_, K>,
    catalogue: &Catalogue,
) -> bool {
    let mut components = COMPONENTS.into_iter();
    if components.any(|(family, kind)| catalogue.entry(family, kind).is_none()) {
        return false;
    }
    let workload = request.parent().workload();
    let wanted = workload.and_then(|workload| workload.reload.as_ref()?.observe);
    wanted.unwrap_or_else(|| !is_kaasops(request.policy().settings("vector")))
}

impl ObservedReloads {
    /// `timeout` is the time after a publication after which a Pod should have loaded it.
    pub(crate) fn new(
        client: Client,
        controllers: ControllerRegistry,
        timeout: Option<Duration>,
        metrics: WorkloadPods,
    ) -> Self {
        Self {
            reloads: Reloads::new(client.clone(), controllers, timeout),
            client,
            evictions: Evictions::default(),
            metrics,
        }
    }

    /// Reports what is known of the Pods. Evicts one that is stuck, if the workload demands it.
    pub(crate) async fn observe<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        status: &RunStatus,
        names: &Names,
        publication: &Publication,
        assembly: &Assembly,
    ) -> ReloadReport {
        let raw = request.raw_parent();
        let uid = raw["metadata"]["uid"].as_str().unwrap_or_default();
        // While components get other names, Pods have two configurations.
        if publication.load_lines.is_empty() || publication.previous.is_some() {
            self.forget(uid);
            return ReloadReport {
                condition: texts::unobserved(raw),
                ..ReloadReport::none(Loading::Unobserved)
            };
        }
        let published = status.last_config_published_at.as_ref();
        let published = published.and_then(|time| time.parse::<Timestamp>().ok());
        let is_published = status.published_config_hash == Some(assembly.hash());
        let Some(published) = published.filter(|_| is_published) else {
            return ReloadReport::none(Loading::Open);
        };
        let name = raw["metadata"]["name"].as_str().unwrap_or_default();
        let target = Target {
            namespace: names.namespace.clone(),
            labels: owned::labels_of_pods(K::ROLE, name),
            container: names.name.clone(),
            lines: publication.load_lines.values().cloned().collect(),
            published,
        };
        let trigger = ReconcileTrigger {
            controller: K::KIND.to_lowercase(),
            namespace: raw["metadata"]["namespace"].as_str().map(str::to_owned),
            name: name.to_owned(),
        };
        let loads = self
            .reloads
            .observe(uid, &target, was_complete(status), trigger);
        let default = Workload::default();
        let workload = request.parent().workload().unwrap_or(&default);
        let values = || publication.secrets.values().map(Vec::as_slice);
        let shown = |log: &str| shown(log, workload, values());
        let reload = workload.reload.as_ref();
        let evicts = reload.and_then(|reload| reload.evict_stuck_pods);
        let next = match evicts {
            Some(true) => {
                self.evictions
                    .evict(&self.client, uid, &target, &loads)
                    .await
            }
            _ => None,
        };
        if loads.listed.is_none() {
            // What is reported stays.
            return ReloadReport {
                loaded: None,
                next,
                ..ReloadReport::none(Loading::Open)
            };
        }
        measured::<K>(raw).set(uid, &self.metrics, &loads);
        let (loaded, not_loaded) = texts::status(&loads, assembly, &shown);
        ReloadReport {
            loaded: Some(Loaded {
                pods: Some(loaded).filter(|_| !loads.pods.is_empty()),
                not_loaded,
            }),
            condition: texts::condition(raw, &loads, assembly, &shown),
            event: texts::event(&loads, assembly, &shown),
            loading: if loads.is_complete() {
                Loading::Done
            } else {
                Loading::Open
            },
            next,
        }
    }

    /// Forgets a workload.
    pub(crate) fn forget(&self, uid: &str) {
        self.reloads.release(uid);
        self.evictions.release(uid);
        self.metrics.forget(uid);
    }
}

/// Returns the workload in the metric.
fn measured<K: WorkloadKind>(workload: &Value) -> MeasuredWorkload {
    let of = |field: &str| {
        workload["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    MeasuredWorkload {
        kind: K::KIND,
        namespace: of("namespace"),
        name: of("name"),
    }
}

/// Returns true if the status says that all Pods have loaded the published configuration.
fn was_complete(status: &RunStatus) -> bool {
    let loaded = status.loaded.as_deref();
    let counts = loaded.and_then(|text| text.split_once('/'));
    counts.is_some_and(|(loaded, all)| loaded == all && all != "0")
}
