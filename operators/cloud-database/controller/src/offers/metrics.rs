//! Prometheus metrics of the catalogue.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Name of the metric of the last time.
pub const OFFERS_READ: &str = "lockstep_rds_catalogue_read_timestamp_seconds";

/// Help text of the metric of the last time.
pub const OFFERS_READ_HELP: &str = "Time at which the offers of an engine were last read from RDS, in seconds since the Unix epoch";

/// Name of the metric of refreshes, without the suffix of counters.
pub const OFFERS_REFRESHES: &str = "lockstep_rds_catalogue_refreshes";

/// Help text of the metric of refreshes.
pub const OFFERS_REFRESHES_HELP: &str = "Total number of refreshes of the catalogue of RDS by engine and result: unchanged, written or failed";

/// Times of the last reads, by engine.
pub type OfferReadTimes = Family<OfferLabels, Gauge>;

/// Number of refreshes, by engine and result.
pub type OfferRefreshes = Family<OfferRefreshLabels, Counter>;

/// Labels of [`OfferReadTimes`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfferLabels {
    pub(crate) engine: &'static str,
}

/// Labels of [`OfferRefreshes`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfferRefreshLabels {
    pub(crate) engine: &'static str,
    pub(crate) result: &'static str,
}

/// Metrics of the catalogue.
#[derive(Clone, Debug, Default)]
pub struct OfferMetrics {
    /// Times of the last reads.
    pub read: OfferReadTimes,
    /// Numbers of refreshes.
    pub refreshes: OfferRefreshes,
}

impl OfferMetrics {
    pub(crate) fn count(&self, engine: &'static str, result: &'static str) {
        let labels = OfferRefreshLabels { engine, result };
        self.refreshes.get_or_create(&labels).inc();
    }

    pub(crate) fn record_read(&self, engine: &'static str, seconds: i64) {
        self.read
            .get_or_create(&OfferLabels { engine })
            .set(seconds);
    }
}
