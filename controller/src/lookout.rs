//! Whether the cluster judges by the CRDs that are compiled here, for the gate beside this process, which
//! may not look for itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::ready;
use futures::stream::select_all;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use shared_validation::{CrdStatus, CrdStatusReport, Validator, ValidatorRegistry};
use tokio::time::timeout;

/// How often every CRD is read, besides on every change. What is told holds for three times as long.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Looks at the CRD of every kind and leaves what it has seen in a file.
pub struct CrdStatusReporter {
    /// The cluster.
    pub client: Client,
    /// What is compiled here.
    pub rulesets: ValidatorRegistry,
    /// Where the gate finds what was seen.
    pub file: PathBuf,
    /// How long a CRD stays as it is before every API server is taken to know it.
    pub propagation_delay: Duration,
    /// What is told of it.
    pub metrics: CrdStatusMetrics,
}

/// The metrics of the lookout.
#[derive(Clone)]
pub struct CrdStatusMetrics {
    in_sync: Family<KindLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

impl CrdStatusMetrics {
    /// Registers all of them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let in_sync = Family::default();
        registry.register(
            "lockstep_crd_in_sync",
            "Whether the cluster's CRD is known to be exactly the one that is compiled here: 1 when it is",
            in_sync.clone(),
        );
        Self { in_sync }
    }
}

/// How long an API server may take to show one.
const DEADLINE: Duration = Duration::from_secs(5);

/// What a CRD was when it was last seen, and since when it has been that.
type Seen = BTreeMap<String, (CrdMatchResult, Instant)>;

/// A CRD as it is. One that was another in between has another generation.
#[derive(Clone, PartialEq, Eq)]
struct CrdMatchResult {
    crd: String,
    uid: Option<String>,
    generation: Option<i64>,
}

impl CrdStatusReporter {
    /// Goes on for ever: on a tick, and whenever somebody has touched a CRD.
    ///
    /// # Guarantees
    ///
    /// What stands in the file has been read from an API server less than
    /// [`Sightings::LIFE`] before it runs out. What cannot be read is not told.
    pub async fn run(self) {
        let crds = self.crds();
        let changes = self.rulesets.iter().map(|ruleset| {
            let changes = watch_object(crds.clone(), name(ruleset.as_ref())).default_backoff();
            changes.filter_map(|event| ready(event.ok())).boxed()
        });
        let mut changes = select_all(changes);
        let mut seen = Seen::new();
        loop {
            let looked = Timestamp::now();
            seen = self.compare_all(&seen).await;
            if let Err(error) = self.write_report(&seen, looked) {
                tracing::warn!(%error, file = %self.file.display(), "cannot tell the gate of the CRDs; it judges by every layer");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                Some(_) = changes.next() => {}
            }
        }
    }

    async fn compare_all(&self, before: &Seen) -> Seen {
        let crds = self.crds();
        let mut seen = Seen::new();
        for ruleset in self.rulesets.iter() {
            let ruleset = ruleset.as_ref();
            let (kind, name) = (CrdStatusReport::name(ruleset), name(ruleset));
            let found = match timeout(DEADLINE, crds.get_opt(name)).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    tracing::warn!(%error, crd = name, "cannot look at the CRD");
                    None
                }
                Err(_) => {
                    tracing::warn!(crd = name, "no API server shows the CRD");
                    None
                }
            };
            let found = found.map(|found| CrdMatchResult {
                crd: CrdStatus::fingerprint(&found.data, ruleset.version()),
                uid: found.metadata.uid,
                generation: found.metadata.generation,
            });
            let ours = CrdStatus::fingerprint(ruleset.crd(), ruleset.version());
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
                    "the cluster's CRD is not the one of this release: what only the CRD says is advice until it is"
                );
            }
            let since = known.map_or_else(Instant::now, |(_, since)| *since);
            seen.insert(kind, (found, since));
        }
        seen
    }

    /// Leaves word for the gate, at once or not at all.
    fn write_report(&self, seen: &Seen, looked: Timestamp) -> io::Result<()> {
        let kinds = seen.iter().map(|(kind, (found, since))| {
            let sighting = CrdStatus {
                crd: found.crd.clone(),
                propagated: since.elapsed() >= self.propagation_delay,
            };
            (kind.clone(), sighting)
        });
        let until = looked.as_second().unsigned_abs() + CrdStatusReport::LIFE.as_secs();
        let sightings = CrdStatusReport {
            until,
            kinds: kinds.collect(),
        };
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)?;
        }
        let partial = self.file.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(&sightings)?)?;
        fs::rename(partial, &self.file)
    }

    fn crds(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }
}

fn name(ruleset: &dyn Validator) -> &str {
    let name = &ruleset.crd()["metadata"]["name"];
    name.as_str().unwrap_or_default()
}
