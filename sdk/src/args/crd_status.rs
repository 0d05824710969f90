//! CRD status file, in which the controller reports to the webhook of the same Pod how the cluster's CRDs compare
//! with the compiled ones.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use lockstep_controller::Watches;
use lockstep_shared_validation::ValidatorRegistry;
use lockstep_webhook_lifecycle::{CrdStatusCache, CrdStatusMetrics, CrdStatusReporter};
use prometheus_client::registry::Registry;

use crate::server::runtime;

/// Option for the path of the CRD status file.
#[derive(clap::Args)]
#[command(next_help_heading = "CRD status")]
pub(crate) struct CrdStatusArgs {
    /// File through which the controller reports whether the installed CRDs match this release. If they match, the
    /// webhook skips schema and CEL validation, which the API server has already done. If the file is missing or
    /// stale, it runs all validation.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/run/lockstep/tls/crds.json"
    )]
    crd_status_file: PathBuf,
}

/// Options for the controller's comparison of the CRDs.
#[derive(clap::Args)]
#[command(next_help_heading = "CRD status")]
pub(crate) struct CrdStatusReporterArgs {
    #[command(flatten)]
    crds: CrdStatusArgs,
    /// Time that a CRD must be unchanged before every API server is assumed to use it.
    #[arg(long, default_value = "10m", value_parser = runtime::duration)]
    crd_propagation_delay: Duration,
}

impl CrdStatusReporterArgs {
    pub(crate) fn reporter(
        &self,
        client: &Client,
        validators: ValidatorRegistry,
        registry: &mut Registry,
        watches: Watches,
    ) -> CrdStatusReporter {
        CrdStatusReporter {
            client: client.clone(),
            validators,
            file: self.crds.crd_status_file.clone(),
            propagation_delay: self.crd_propagation_delay,
            metrics: CrdStatusMetrics::register(registry),
            watches,
        }
    }
}

impl CrdStatusArgs {
    /// Reads the file periodically and returns the CRD status, which is updated in the background.
    pub(crate) fn watch(self, validators: &ValidatorRegistry) -> CrdStatusCache {
        let cache = CrdStatusCache::new(validators);
        tokio::spawn(cache.clone().watch_file(self.crd_status_file));
        cache
    }
}
