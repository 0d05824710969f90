//! The word that the controller leaves for the gate beside it: how the cluster's CRDs compare with the
//! compiled ones.

use std::path::PathBuf;
use std::time::Duration;

use controller::{CrdStatusMetrics, CrdStatusReporter};
use jiff::Timestamp;
use kube::Client;
use prometheus_client::registry::Registry;
use shared_validation::{CrdMatch, CrdStatusReport, ValidatorRegistry};
use webhook::CrdStatusCache;

use crate::serving;

/// How often the gate reads it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where it is left.
#[derive(clap::Args)]
pub(crate) struct CrdStatusArgs {
    /// The file by which the controller tells the gate beside it whether the cluster's CRDs are those of
    /// this release. While they are, the gate judges only what the API server has not; while it says
    /// nothing, all.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/run/lockstep/tls/crds.json"
    )]
    crd_status_file: PathBuf,
}

/// How the controller looks at them.
#[derive(clap::Args)]
pub(crate) struct CrdStatusReporterArgs {
    #[command(flatten)]
    crds: CrdStatusArgs,
    /// How long a CRD stays as it is before every API server is taken to know it.
    #[arg(long, default_value = "10m", value_parser = serving::duration)]
    crd_propagation_delay: Duration,
}

impl CrdStatusReporterArgs {
    pub(crate) fn reporter(
        &self,
        client: &Client,
        rulesets: ValidatorRegistry,
        registry: &mut Registry,
    ) -> CrdStatusReporter {
        CrdStatusReporter {
            client: client.clone(),
            rulesets,
            file: self.crds.crd_status_file.clone(),
            propagation_delay: self.crd_propagation_delay,
            metrics: CrdStatusMetrics::register(registry),
        }
    }
}

impl CrdStatusArgs {
    /// Keeps what is known fresh.
    pub(crate) fn watch(self, rulesets: &ValidatorRegistry) -> CrdStatusCache {
        let current = CrdStatusCache::new(rulesets);
        let learning = current.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            let mut before = Vec::new();
            loop {
                ticks.tick().await;
                let known = learning.update(&self.read(), now());
                if known != before {
                    tracing::info!(known = describe(&known), "the cluster's CRDs");
                    before = known;
                }
            }
        });
        current
    }

    /// What stands there now. A file that cannot be read says nothing.
    fn read(&self) -> CrdStatusReport {
        let text = std::fs::read(&self.crd_status_file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

fn describe(known: &[CrdMatch]) -> String {
    let words = known.iter().map(|crd| match crd {
        CrdMatch::Unknown => "unknown",
        CrdMatch::Same => "same",
        CrdMatch::Different => "different",
    });
    words.collect::<Vec<_>>().join(", ")
}

fn now() -> u64 {
    Timestamp::now().as_second().unsigned_abs()
}
