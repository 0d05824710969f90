//! Comparison of the CRDs in the cluster with those compiled into this release. The result is reported to the webhook
//! that runs next to this process and has no access to the API server.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::select_all;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use lockstep_shared_validation::{Validator, ValidatorRegistry, crd_fingerprint};
use lockstep_watch::{WatchedObject, Watches};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::timeout;

use crate::crd_status::report::{CrdStatus, CrdStatusReport};

/// Interval at which every CRD is read, in addition to every change. A report is valid for three times as long.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Reads the CRD of every kind and writes the CRD status to a file.
pub struct CrdStatusReporter {
    /// Client of the cluster.
    pub client: Client,
    /// Rulesets with the compiled CRDs.
    pub validators: ValidatorRegistry,
    /// File that the webhook reads.
    pub file: PathBuf,
    /// Propagation delay: time after which every API server is assumed to know a changed CRD.
    pub propagation_delay: Duration,
    /// Metrics to update.
    pub metrics: CrdStatusMetrics,
    /// Watches of the process, to which those on the CRDs are added.
    pub watches: Watches,
}

/// Prometheus metrics for the CRD status.
#[derive(Clone)]
pub struct CrdStatusMetrics {
    in_sync: Family<KindLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

impl CrdStatusMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let in_sync = Family::default();
        registry.register(
            "lockstep_crd_in_sync",
            "1 if the CRD in the cluster is known to be the one compiled into this release, 0 otherwise",
            in_sync.clone(),
        );
        Self { in_sync }
    }
}

/// Timeout for reading one CRD.
const DEADLINE: Duration = Duration::from_secs(5);

/// Latest state of each CRD, and the time since which it has been unchanged.
type Statuses = BTreeMap<String, (CrdMatchResult, Instant)>;

/// State of a CRD. If it was changed and changed back in between, its generation differs.
#[derive(Clone, PartialEq, Eq)]
struct CrdMatchResult {
    crd: String,
    uid: Option<String>,
    generation: Option<i64>,
}

impl CrdStatusReporter {
    /// Runs for ever: at an interval, and after every change of a CRD.
    ///
    /// # Guarantees
    ///
    /// The content of the file was read from an API server less than [`CrdStatusReport::TTL`] before it expires. A CRD
    /// that cannot be read is not reported.
    pub async fn run(self) {
        let changes = self.validators.iter().map(|ruleset| {
            let crd = WatchedObject {
                resource: resource(),
                namespace: None,
                name: name(ruleset.as_ref()).to_owned(),
            };
            let changes = crd.changes(&self.client, &self.watches, "crd-status");
            changes.boxed()
        });
        let mut changes = select_all(changes);
        let mut seen = Statuses::new();
        loop {
            let listed_at = Timestamp::now();
            seen = self.compare_all(&seen).await;
            if let Err(error) = self.write_report(&seen, listed_at) {
                tracing::warn!(%error, file = %self.file.display(), "cannot report the CRD status to the webhook, which therefore runs all validation");
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                Some(()) = changes.next() => {}
            }
        }
    }

    async fn compare_all(&self, before: &Statuses) -> Statuses {
        let crds = self.crds();
        let mut seen = Statuses::new();
        for ruleset in self.validators.iter() {
            let ruleset = ruleset.as_ref();
            let (kind, name) = (CrdStatusReport::name(ruleset), name(ruleset));
            let found = match timeout(DEADLINE, crds.get_opt(name)).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    tracing::warn!(%error, crd = name, "cannot read the CRD");
                    None
                }
                Err(_) => {
                    tracing::warn!(crd = name, "timed out reading the CRD");
                    None
                }
            };
            let found = found.map(|found| CrdMatchResult {
                crd: crd_fingerprint(&found.data, ruleset.version()),
                uid: found.metadata.uid,
                generation: found.metadata.generation,
            });
            let ours = crd_fingerprint(ruleset.crd(), ruleset.version());
            let is_ours = found.as_ref().is_some_and(|found| found.crd == ours);
            let labels = KindLabels {
                kind: ruleset.kind().to_owned(),
            };
            let in_sync = self.metrics.in_sync.get_or_create_owned(&labels);
            in_sync.set(i64::from(is_ours));
            let Some(found) = found else {
                continue;
            };
            let known = before.get(&kind).filter(|(before, _)| *before == found);
            if known.is_none() && !is_ours {
                tracing::warn!(
                    crd = name,
                    "the CRD in the cluster is not the one of this release: until it is, violations of its schema and CEL rules are only warnings"
                );
            }
            let since = known.map_or_else(Instant::now, |(_, since)| *since);
            seen.insert(kind, (found, since));
        }
        seen
    }

    fn write_report(&self, seen: &Statuses, listed_at: Timestamp) -> io::Result<()> {
        let kinds = seen.iter().map(|(kind, (found, since))| {
            let status = CrdStatus {
                crd: found.crd.clone(),
                propagated: since.elapsed() >= self.propagation_delay,
            };
            (kind.clone(), status)
        });
        let until = listed_at.as_second().unsigned_abs() + CrdStatusReport::TTL.as_secs();
        let report = CrdStatusReport {
            until,
            kinds: kinds.collect(),
        };
        report.write(&self.file)
    }

    fn crds(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource())
    }
}

fn resource() -> ApiResource {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    ApiResource::from_gvk(&gvk)
}

fn name(ruleset: &dyn Validator) -> &str {
    let name = &ruleset.crd()["metadata"]["name"];
    name.as_str().unwrap_or_default()
}
