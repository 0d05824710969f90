//! Options of the reconciliations of all kinds.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use anyhow::bail;
use lockstep_controller::{Config, DeletionTimeouts, RateLimiter};

use crate::server::runtime::duration;

/// Options of all controllers.
#[derive(clap::Args)]
#[command(next_help_heading = "Reconciliation")]
pub(crate) struct ReconciliationArgs {
    /// Maximum average number of calls to the API server per second for reconciliations. Default: unlimited; only
    /// the API server's own flow control applies.
    #[arg(long)]
    kube_api_qps: Option<NonZeroU32>,
    /// Maximum number of calls to the API server in a burst for reconciliations. It applies only with
    /// `--kube-api-qps`.
    #[arg(long, default_value = "100")]
    kube_api_burst: NonZeroU32,
    /// Maximum number of objects of each kind that are reconciled concurrently.
    #[arg(long, default_value = "8")]
    max_concurrent_reconciles: NonZeroUsize,
    /// Time that a change of an object waits for further changes of it, to reconcile all of them together.
    #[arg(long, default_value = "0s", value_parser = duration)]
    debounce: Duration,
    /// Report an object as stalled (condition and Event) if its deletion takes longer than this.
    #[arg(long, default_value = "1h", value_parser = duration)]
    deletion_stalled_threshold: Duration,
    /// Remove the finalizer this long after deletion started even if cleanup has not completed. External resources
    /// are leaked and reported by an `ResourcesLeaked` Event. Default: never.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    force_finalize_after: Option<Duration>,
}

impl ReconciliationArgs {
    /// Returns the rate limiter for calls to the API server.
    pub(crate) fn api_calls(&self) -> RateLimiter {
        self.kube_api_qps
            .map_or_else(RateLimiter::unlimited, |rate| {
                RateLimiter::new(rate, self.kube_api_burst)
            })
    }

    /// Returns the configuration of each controller.
    pub(crate) fn config(&self) -> Config {
        Config {
            max_concurrent_reconciles: self.max_concurrent_reconciles,
            debounce: self.debounce,
            ..Config::default()
        }
    }

    pub(crate) fn deletion_timeouts(&self) -> anyhow::Result<DeletionTimeouts> {
        let stalled_threshold = self.deletion_stalled_threshold;
        if let Some(let_go_after) = self.force_finalize_after
            && let_go_after <= stalled_threshold
        {
            bail!(
                "`--force-finalize-after` is {let_go_after:?}: it must be greater than `--deletion-stalled-threshold` ({stalled_threshold:?})"
            );
        }
        Ok(DeletionTimeouts {
            stalled_after: stalled_threshold,
            force_after: self.force_finalize_after,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        reconciliations: ReconciliationArgs,
    }

    #[test]
    fn a_finalizer_is_not_removed_before_the_stall_is_reported() {
        let timeouts = |arguments: &[&str]| {
            let options = Options::parse_from([&["lockstep"], arguments].concat());
            options
                .reconciliations
                .deletion_timeouts()
                .map_err(|error| error.to_string())
        };
        assert!(timeouts(&["--force-finalize-after=24h"]).is_ok());
        let error = timeouts(&["--force-finalize-after=0s"]).expect_err("zero is too short");
        assert!(
            error.contains("must be greater than `--deletion-stalled-threshold`"),
            "{error}"
        );
    }
}
