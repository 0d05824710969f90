//! Batches of sinks.

use serde_json::Value;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid};
use crate::start_up::sink_traits::SinkTrait;

/// Sinks whose service limits the size of a batch: type, option, maximum.
const MAXIMUM: [(&str, &str, u64); 13] = [
    ("aws_kinesis_firehose", "batch.max_bytes", 4_194_304),
    ("aws_kinesis_firehose", "batch.max_events", 500),
    ("aws_kinesis_streams", "batch.max_bytes", 5_000_000),
    ("aws_kinesis_streams", "batch.max_events", 500),
    ("azure_logs_ingestion", "batch.max_bytes", 31_457_280),
    ("azure_monitor_logs", "batch.max_bytes", 31_457_280),
    ("databricks_zerobus", "batch.max_bytes", 10_000_000),
    ("datadog_logs", "batch.max_bytes", 4_250_000),
    ("datadog_logs", "batch.max_events", 1_000),
    ("datadog_traces", "batch.max_bytes", 3_000_000),
    ("datadog_traces", "batch.max_events", 1_000),
    ("gcp_pubsub", "batch.max_bytes", 10_000_000),
    ("gcp_stackdriver_logs", "batch.max_bytes", 10_000_000),
];

/// Seconds that a duration cannot have any more, 2 to the power of 64.
const LONGEST_SECS: f64 = 18_446_744_073_709_551_616.0;

/// Sinks that do not limit batches by bytes.
const WITHOUT_BYTES: [&str; 3] = [
    "aws_cloudwatch_metrics",
    "influxdb_metrics",
    "sematext_metrics",
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.has_trait(SinkTrait::Batch) {
        return;
    }
    for name in ["batch.max_bytes", "batch.max_events", "batch.timeout_secs"] {
        let found = options.get(name);
        // A negative number of bytes or events is an invalid option.
        let is_wrong = |value: &Value| {
            value == 0
                || value
                    .as_f64()
                    .is_some_and(|number| number <= 0.0 && name == "batch.timeout_secs")
        };
        if let Some(found) = found.filter(|found| is_wrong(found.value)) {
            found.refuse("must be greater than 0", problems);
        }
    }
    if let Some(found) = options.get("batch.timeout_secs")
        && found.value.as_f64() >= Some(LONGEST_SECS)
    {
        let detail = "must be less than 18446744073709551616 seconds: Vector panics at start";
        found.refuse(detail, problems);
    }
    for (kind, name, maximum) in MAXIMUM {
        if options.kind != kind {
            continue;
        }
        let found = options.get(name);
        if let Some(found) = found.filter(|found| found.value.as_u64() > Some(maximum)) {
            let detail = format!("must be at most {maximum}, the limit of the service");
            found.refuse(detail, problems);
        }
    }
    if WITHOUT_BYTES.contains(&options.kind)
        && let Some(found) = options.get("batch.max_bytes")
        && found.value.as_u64() > Some(0)
    {
        let detail = "cannot be set for this sink; set `batch.max_events`";
        forbid(found.path, detail, problems);
    }
}
