//! Ports of Vector itself.

/// Port of Vector's API.
pub(crate) const API: u16 = 8686;

/// Port of Vector's own metrics.
pub(crate) const METRICS: u16 = 9598;

/// Name of the port of Vector's own metrics.
pub(crate) const METRICS_NAME: &str = "prom-exporter";
