//! HTTP proxies of components.

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, refuse};
use crate::start_up::uri::parse;

/// Sinks whose HTTP client uses the proxy.
const SINKS: &[&str] = &[
    "appsignal",
    "aws_cloudwatch_logs",
    "aws_cloudwatch_metrics",
    "aws_kinesis_firehose",
    "aws_kinesis_streams",
    "aws_s3",
    "aws_sns",
    "aws_sqs",
    "axiom",
    "azure_logs_ingestion",
    "azure_monitor_logs",
    "clickhouse",
    "databend",
    "datadog_events",
    "datadog_logs",
    "datadog_metrics",
    "datadog_traces",
    "doris",
    "elasticsearch",
    "gcp_chronicle_unstructured",
    "gcp_cloud_storage",
    "gcp_pubsub",
    "gcp_stackdriver_logs",
    "gcp_stackdriver_metrics",
    "greptimedb_logs",
    "honeycomb",
    "http",
    "humio_logs",
    "humio_metrics",
    "influxdb_logs",
    "influxdb_metrics",
    "keep",
    "logdna",
    "loki",
    "mezmo",
    "new_relic",
    "prometheus_remote_write",
    "sematext_logs",
    "sematext_metrics",
    "splunk_hec_logs",
    "splunk_hec_metrics",
    "vector",
];

/// Sources whose HTTP client uses the proxy.
const SOURCES: &[&str] = &[
    "apache_metrics",
    "aws_ecs_metrics",
    "aws_s3",
    "aws_sqs",
    "eventstoredb_metrics",
    "http_client",
    "nginx_metrics",
    "okta",
    "prometheus_scrape",
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_disabled = options
        .get("proxy.enabled")
        .is_some_and(|found| found.value == false);
    if is_disabled || !(options.is_sink(SINKS) || options.is_source(SOURCES)) {
        return;
    }
    for option in ["proxy.http", "proxy.https"] {
        let Some((path, text)) = options.text(option) else {
            continue;
        };
        if parse(text).is_err() {
            refuse(
                path,
                text,
                "must be a URI, such as `http://proxy:3128`",
                problems,
            );
        }
    }
}
