//! Numbers outside the range of a service, of a library of Vector, or of the memory of a process.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source, Transform};
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, SetOption};
use crate::start_up::sink_traits::SinkTrait;

/// Options with a range: family, type, option, range.
const RANGES: &[(ComponentKind, &str, &str, RangeInclusive<i64>)] = &[
    (
        Sink,
        "splunk_hec_logs",
        "acknowledgements.max_pending_acks",
        0..=PERMITS,
    ),
    (
        Sink,
        "splunk_hec_metrics",
        "acknowledgements.max_pending_acks",
        0..=PERMITS,
    ),
    (
        Sink,
        "websocket_server",
        "message_buffering.max_events",
        0..=CAPACITY,
    ),
    (Source, "aws_s3", "sqs.max_number_of_messages", 1..=10),
    (Source, "datadog_agent", "send_timeout_secs", 0..=i64::MAX),
    (Source, "dnstap", "socket_file_mode", 0o700..=0o777),
    (Source, "exec", "maximum_buffer_size_bytes", 1..=i64::MAX),
    (Source, "file", "ignore_older_secs", 0..=AGE),
    (Source, "file", "max_line_bytes", 0..=ADDRESS_SPACE),
    (Source, "gcp_pubsub", "ack_deadline_seconds", 10..=600),
    (Source, "gcp_pubsub", "ack_deadline_secs", 10..=600),
    (Source, "gcp_pubsub", "retry_delay_seconds", 0..=i64::MAX),
    (Source, "kubernetes_logs", "ignore_older_secs", 0..=AGE),
    (Source, "okta", "since", 0..=AGE),
    (Transform, "dedupe", "cache.num_events", 0..=CAPACITY),
    (Transform, "delay", "queue_capacity", 0..=CAPACITY),
    (Transform, "window", "num_events_before", 0..=CAPACITY),
];

/// Maxima of every sink with requests.
const OF_REQUESTS: [&str; 3] = [
    "request.adaptive_concurrency.initial_concurrency",
    "request.concurrency",
    "request.retry_initial_backoff_secs",
];

/// Sinks that compute quantiles.
const QUANTILES: &[&str] = &["influxdb_metrics", "prometheus_exporter"];

/// Events for which memory is reserved at the start: with more, Vector ends on any machine.
const CAPACITY: i64 = 1 << 48;

/// Bytes of memory that a process can address.
const ADDRESS_SPACE: i64 = (1 << 47) - 1;

/// Permits of a semaphore of tokio.
const PERMITS: i64 = (1 << 61) - 1;

/// Seconds back to the first date that the library of Vector knows.
const AGE: i64 = 8_300_000_000_000;

/// Levels of compression of a Parquet file: algorithm, levels.
const PARQUET_LEVELS: [(&str, RangeInclusive<i64>); 2] = [("gzip", 0..=9), ("zstd", 1..=22)];

/// Periods in seconds with which `CloudWatch` stores a metric.
const RESOLUTIONS: [u64; 2] = [1, 60];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (family, kind, option, range) in RANGES {
        if options.is(*family, kind) {
            within(options.get(option), range, problems);
        }
    }
    if options.has_trait(SinkTrait::RateLimit) {
        for option in OF_REQUESTS {
            within(options.get(option), &(0..=PERMITS), problems);
        }
    }
    if options.family == Sink && options.equals("buffer.type", "memory") {
        within(options.get("buffer.max_events"), &(0..=CAPACITY), problems);
        within(options.get("buffer.max_size"), &(0..=PERMITS), problems);
    }
    if options.family == Sink && options.equals("encoding.codec", "csv") {
        let capacity = options.get("encoding.csv.capacity");
        within(capacity, &(0..=ADDRESS_SPACE), problems);
    }
    if options.equals("framing.method", "chunked_gelf") {
        let timeout = options.get("framing.chunked_gelf.timeout_secs");
        within(timeout, &(0..=i64::MAX), problems);
    }
    if options.is_sink(&["aws_s3"]) {
        for (algorithm, levels) in PARQUET_LEVELS {
            if options.equals("batch_encoding.compression.algorithm", algorithm) {
                let level = options.get("batch_encoding.compression.level");
                within(level, &levels, problems);
            }
        }
    }
    if options.is_sink(QUANTILES) {
        each(options, "quantiles", problems, |value| {
            let is_quantile = value
                .as_f64()
                .is_none_or(|number| (0.0..=1.0).contains(&number));
            (!is_quantile).then_some("must be from 0 to 1")
        });
    }
    if options.is_sink(&["aws_cloudwatch_metrics"]) {
        each(options, "storage_resolution", problems, |value| {
            let is_known = value
                .as_u64()
                .is_none_or(|number| RESOLUTIONS.contains(&number));
            (!is_known).then_some("must be 1 or 60 seconds")
        });
    }
}

/// Reports a number that is not in a range.
fn within(
    found: Option<SetOption<'_>>,
    range: &RangeInclusive<i64>,
    problems: &mut DiagnosticList,
) {
    let Some(found) = found.filter(|found| is_outside(found.value, range)) else {
        return;
    };
    let (minimum, maximum) = (range.start(), range.end());
    let detail = match (*minimum, *maximum) {
        (minimum, i64::MAX) => format!("must be at least {minimum}"),
        (0, maximum) => format!("must be at most {maximum}"),
        (minimum, maximum) => format!("must be from {minimum} to {maximum}"),
    };
    found.refuse(detail, problems);
}

fn is_outside(value: &Value, range: &RangeInclusive<i64>) -> bool {
    if let Some(number) = value.as_i64() {
        return !range.contains(&number);
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "no option with a maximum of this size is a floating-point number"
    )]
    let (minimum, maximum) = (*range.start() as f64, *range.end() as f64);
    value
        .as_f64()
        .is_some_and(|number| number < minimum || number > maximum)
}

/// Reports the elements of a list or the values of a map that a function finds wrong.
fn each(
    options: &ComponentOptions<'_>,
    option: &str,
    problems: &mut DiagnosticList,
    wrong: impl Fn(&Value) -> Option<&'static str>,
) {
    let Some(found) = options.get(option) else {
        return;
    };
    let items = found.value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(index, value)| (found.path.index(index), value));
    let fields = found.value.as_object().into_iter().flatten();
    let fields = fields.map(|(name, value)| (crate::option_path::below(&found.path, name), value));
    for (path, value) in items.chain(fields) {
        if let Some(detail) = wrong(value) {
            SetOption { path, value }.refuse(detail, problems);
        }
    }
}
