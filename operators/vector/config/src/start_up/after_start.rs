//! Options with which Vector starts, and ends right after it or when the first event arrives. All pipelines in the process
//! end with it.

use chrono::format::{Item, StrftimeItems};
use http_02::{HeaderName, HeaderValue};
use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::Value;

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source, Transform};
use crate::confinement::uri::axiom_endpoint;
use crate::diagnostic::{Check, DiagnosticList};
use crate::option_path::below;
use crate::start_up::component_options::{ComponentOptions, SetOption};
use crate::start_up::sink_traits::SinkTrait;
use crate::start_up::tls;
use crate::start_up::uri::{has_valid_authority, parse};

/// Milliseconds that a queue of timers of tokio can represent.
const TIMER_MILLIS: f64 = 68_719_476_735.0;

/// Seconds that the clock of a process can be ahead: an `i64` without what has passed since the machine was started.
const CLOCK_SECS: f64 = 9.2e18;

/// Bytes of memory that a process cannot address any more.
const BEYOND_MEMORY: f64 = 140_737_488_355_328.0;

/// Header of a chunk of GELF in bytes.
const CHUNK_HEADER: f64 = 12.0;

/// Options that must not be greater than a number: family, type, option, maximum.
const MAXIMA: &[(ComponentKind, &str, &str, f64)] = &[
    (Sink, "file", "idle_timeout_secs", TIMER_MILLIS / 1000.0),
    (Sink, "prometheus_exporter", "flush_period_secs", CLOCK_SECS),
    (Source, "aws_s3", "multiline.timeout_ms", TIMER_MILLIS),
    (Source, "docker_logs", "multiline.timeout_ms", TIMER_MILLIS),
    (Source, "file", "multiline.timeout_ms", TIMER_MILLIS),
    (Transform, "delay", "delay_ms", TIMER_MILLIS),
];

/// Sinks with a batch for each partition, whose time-outs are timers.
const PARTITIONED: &[&str] = &[
    "aws_cloudwatch_logs",
    "aws_s3",
    "azure_blob",
    "clickhouse",
    "datadog_logs",
    "datadog_metrics",
    "datadog_traces",
    "doris",
    "gcp_chronicle_unstructured",
    "gcp_cloud_storage",
    "greptimedb_logs",
    "http",
    "loki",
    "prometheus_remote_write",
    "splunk_hec_logs",
    "splunk_hec_metrics",
    "webhdfs",
];

/// Time formats of the names of objects: type of sink, option.
const TIME_FORMATS: [(&str, &str); 3] = [
    ("aws_s3", "filename_time_format"),
    ("azure_blob", "blob_time_format"),
    ("gcp_cloud_storage", "filename_time_format"),
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    numbers(options, problems);
    if options.is_sink(&["prometheus_exporter"])
        && options.is_true("tls.enabled")
        && tls::file(options, "tls", "crt_file").is_none()
    {
        let detail = "must have `crt_file` if `enabled` is true: a server needs a certificate";
        at_once(options.path("tls"), detail, problems);
    }
    if options.is_source(&["socket"])
        && options.equals("mode", "udp")
        && let Some(found) = options.get("max_length")
        && !options.has("receive_buffer_bytes")
        && found.value.as_f64() >= Some(BEYOND_MEMORY - 1.0)
    {
        at_once(
            found.path,
            "must fit into the memory of a process",
            problems,
        );
    }
    for (kind, option) in TIME_FORMATS {
        if options.is_sink(&[kind])
            && let Some((path, text)) = options.text(option)
            && StrftimeItems::new(text).any(|item| item == Item::Error)
        {
            report(path, "must be a time format, such as `%s`", problems);
        }
    }
    if options.is_sink(&["datadog_logs"])
        && let Some((path, key)) = options.text("default_api_key")
        && HeaderValue::from_bytes(key.as_bytes()).is_err()
    {
        let detail = "becomes an HTTP header: it cannot have line breaks and control characters";
        report(path, detail, problems);
    }
    if options.is_sink(&["elasticsearch"]) {
        headers(options, problems);
    }
    if options.is_sink(&["logdna", "mezmo"])
        && let Some((path, endpoint)) = options.text("endpoint")
        && parse(&format!("{endpoint}/logs/ingest?hostname=h")).is_err()
    {
        report(path, "must begin with `https://` or `http://`", problems);
    }
    if options.is_sink(&["axiom"])
        && let Some((option, endpoint)) = axiom_endpoint(options.value())
        && !options.is_replaced(&endpoint)
        && !endpoint.contains(['{', '%'])
        && parse(&endpoint).is_ok_and(|uri| !has_valid_authority(&uri))
    {
        let detail = "must have a host and, if any, a port from 0 to 65535";
        report(options.path(option), detail, problems);
    }
}

fn numbers(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let mut maxima: Vec<_> = MAXIMA
        .iter()
        .filter(|(family, kind, ..)| options.is(*family, kind))
        .map(|(.., option, maximum)| (*option, *maximum))
        .collect();
    if options.is_source(&["file"]) && options.has("message_start_indicator") {
        maxima.push(("multi_line_timeout", TIMER_MILLIS));
    }
    if options.is_sink(PARTITIONED) {
        maxima.push(("batch.timeout_secs", TIMER_MILLIS / 1000.0));
    }
    if options.has_trait(SinkTrait::RateLimit) {
        maxima.push(("request.rate_limit_duration_secs", CLOCK_SECS));
    }
    for (option, maximum) in maxima {
        let detail = format!("must be at most {}", maximum.floor());
        each(
            options.get(option),
            |number| number > maximum,
            &detail,
            problems,
        );
    }
    if options.equals("framing.method", "length_delimited") {
        let offset = options.get("framing.length_delimited.length_field_offset");
        let detail = "must be an offset within the memory of a process";
        each(offset, |number| number >= BEYOND_MEMORY, detail, problems);
    }
    let positive = "must be greater than 0";
    if options.is_sink(&["blackhole"]) {
        each(options.get("rate"), |rate| rate == 0.0, positive, problems);
    }
    if options.is(Transform, "lua") {
        let timers = options.get("timers");
        let items = timers.as_ref().and_then(|found| found.value.as_array());
        for (index, timer) in items.into_iter().flatten().enumerate() {
            if timer["interval_seconds"] == 0 {
                let path = options.path("timers").index(index);
                report(path.child("interval_seconds"), positive, problems);
            }
        }
    }
    let is_chunked = options.is_sink(&["socket"])
        && options.equals("mode", "udp")
        && options.equals("encoding.codec", "gelf");
    if is_chunked {
        let size = options.get("encoding.gelf.max_chunk_size");
        let detail = "must be at least 13 bytes: a chunk has a header of 12";
        each(size, |number| number <= CHUNK_HEADER, detail, problems);
    }
}

/// Validates headers that the sink does not validate when it is built.
fn headers(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let Some(found) = options.get("request.headers") else {
        return;
    };
    for (name, value) in found.value.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let is_known = !options.is_replaced(name) && !options.is_replaced(value);
        let is_valid = HeaderName::from_bytes(name.as_bytes()).is_ok()
            && HeaderValue::from_bytes(value.as_bytes()).is_ok();
        if is_known && !is_valid {
            let detail = "must be the name and the value of an HTTP header";
            report(below(&found.path, name), detail, problems);
        }
    }
}

/// Reports an option if a function finds its number wrong.
fn each(
    found: Option<SetOption<'_>>,
    is_wrong: impl Fn(f64) -> bool,
    detail: &str,
    problems: &mut DiagnosticList,
) {
    let found = found.filter(|found| found.value.as_f64().is_some_and(is_wrong));
    if let Some(found) = found {
        let value: &Value = found.value;
        let detail = format!("{detail}: Vector panics at the first event");
        let error = FieldError::invalid(found.path, value.clone(), detail);
        problems.add(Check::AfterStart, error);
    }
}

fn report(path: FieldPath, detail: &str, problems: &mut DiagnosticList) {
    let detail = format!("{detail}: Vector panics at the first event");
    problems.add(Check::AfterStart, FieldError::invalid_hidden(path, detail));
}

/// Reports an option with which Vector ends before any event.
pub(crate) fn at_once(path: FieldPath, detail: &str, problems: &mut DiagnosticList) {
    let detail = format!("{detail}: Vector ends right after its start");
    problems.add(Check::AfterStart, FieldError::invalid_hidden(path, detail));
}
