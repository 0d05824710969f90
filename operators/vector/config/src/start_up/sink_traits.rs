//! Parts of Vector's sinks that many of them share, by type of sink.

use SinkTrait::{Batch, Proxy, RateLimit, SwitchedTls, Tls};

/// Part of a sink that is validated when the sink is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SinkTrait {
    /// The options of `batch`.
    Batch,
    /// The limits of the request rate.
    RateLimit,
    /// The proxy of the HTTP client.
    Proxy,
    /// The TLS client, as soon as `tls` is set.
    Tls,
    /// The TLS client, if `tls.enabled` is true.
    SwitchedTls,
}

/// From the `build` functions in <https://github.com/vectordotdev/vector/tree/v0.57.0/src/sinks>.
const SINKS: &[(&str, &[SinkTrait])] = &[
    ("appsignal", &[Batch, RateLimit, Proxy, SwitchedTls]),
    ("aws_cloudwatch_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("aws_cloudwatch_metrics", &[Batch, RateLimit, Proxy, Tls]),
    ("aws_kinesis_firehose", &[Batch, RateLimit, Proxy, Tls]),
    ("aws_kinesis_streams", &[Batch, RateLimit, Proxy, Tls]),
    ("aws_s3", &[Batch, RateLimit, Proxy, Tls]),
    ("aws_sns", &[RateLimit, Proxy, Tls]),
    ("aws_sqs", &[RateLimit, Proxy, Tls]),
    ("axiom", &[Batch, RateLimit, Proxy, Tls]),
    ("azure_blob", &[Batch, RateLimit]),
    ("azure_logs_ingestion", &[Batch, RateLimit, Proxy, Tls]),
    ("azure_monitor_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("clickhouse", &[Batch, RateLimit, Proxy, Tls]),
    ("databend", &[Batch, RateLimit, Proxy]),
    ("databricks_zerobus", &[Batch, RateLimit, Proxy]),
    ("datadog_events", &[RateLimit, Proxy, SwitchedTls]),
    ("datadog_logs", &[Batch, RateLimit, Proxy, SwitchedTls]),
    ("datadog_metrics", &[Batch, RateLimit, Proxy, SwitchedTls]),
    ("datadog_traces", &[Batch, RateLimit, Proxy, SwitchedTls]),
    ("doris", &[Batch, RateLimit, Proxy, Tls]),
    ("elasticsearch", &[Batch, RateLimit, Proxy, Tls]),
    (
        "gcp_chronicle_unstructured",
        &[Batch, RateLimit, Proxy, Tls],
    ),
    ("gcp_cloud_storage", &[Batch, RateLimit, Proxy, Tls]),
    ("gcp_pubsub", &[Batch, RateLimit, Proxy, Tls]),
    ("gcp_stackdriver_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("gcp_stackdriver_metrics", &[Batch, RateLimit, Proxy, Tls]),
    ("greptimedb", &[Batch, RateLimit]),
    ("greptimedb_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("greptimedb_metrics", &[Batch, RateLimit]),
    ("honeycomb", &[Batch, RateLimit, Proxy]),
    ("http", &[Batch, RateLimit, Proxy, Tls]),
    ("humio_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("humio_metrics", &[Batch, RateLimit, Proxy, Tls]),
    ("influxdb_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("influxdb_metrics", &[Batch, RateLimit, Proxy, Tls]),
    ("keep", &[Batch, RateLimit, Proxy]),
    ("logdna", &[Batch, RateLimit, Proxy]),
    ("loki", &[Batch, RateLimit, Proxy, Tls]),
    ("mezmo", &[Batch, RateLimit, Proxy]),
    ("new_relic", &[Batch, RateLimit, Proxy]),
    ("postgres", &[Batch, RateLimit]),
    ("prometheus_remote_write", &[Batch, RateLimit, Proxy, Tls]),
    ("redis", &[Batch, RateLimit]),
    ("sematext_logs", &[Batch, RateLimit, Proxy]),
    ("sematext_metrics", &[Batch, RateLimit, Proxy]),
    ("splunk_hec_logs", &[Batch, RateLimit, Proxy, Tls]),
    ("splunk_hec_metrics", &[Batch, RateLimit, Proxy, Tls]),
    ("statsd", &[Batch]),
    ("vector", &[Batch, RateLimit, Proxy, SwitchedTls]),
    ("webhdfs", &[Batch]),
];

/// Returns true if a type of sink has a part.
pub(crate) fn has(kind: &str, part: SinkTrait) -> bool {
    let mut sinks = SINKS.iter();
    sinks.any(|(name, parts)| *name == kind && parts.contains(&part))
}
