//! Options that contradict each other.

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source};
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};

/// Options that cannot be set together: family, type, options.
const EXCLUSIVE: &[(ComponentKind, &str, [&str; 2])] = &[
    (Sink, "axiom", ["url", "region"]),
    (Sink, "azure_blob", ["connection_string", "account_name"]),
    (Sink, "azure_blob", ["connection_string", "blob_endpoint"]),
    (Sink, "azure_blob", ["account_name", "blob_endpoint"]),
    (Sink, "gcp_chronicle_unstructured", ["endpoint", "region"]),
    (Sink, "vector", ["address", "routing"]),
    (Source, "http", ["encoding", "framing"]),
    (Source, "http", ["encoding", "decoding"]),
    (Source, "http_server", ["encoding", "framing"]),
    (Source, "http_server", ["encoding", "decoding"]),
];

/// Options that must be set together: family, type, options.
const TOGETHER: &[(ComponentKind, &str, [&str; 2])] = &[
    (Sink, "mqtt", ["user", "password"]),
    (Source, "mqtt", ["user", "password"]),
];

/// Sinks with queues: type, and the option that names the queue.
const QUEUES: [(&str, &str); 2] = [("aws_sns", "topic_arn"), ("aws_sqs", "queue_url")];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (family, kind, [first, second]) in EXCLUSIVE {
        if options.is(*family, kind)
            && options.is_known(first)
            && options.has(first)
            && let Some(found) = options.get(second)
        {
            forbid(
                found.path,
                format!("cannot be set beside `{first}`; remove one of them"),
                problems,
            );
        }
    }
    for (family, kind, pair) in TOGETHER {
        if options.is(*family, kind) {
            together(options, *pair, problems);
        }
    }
    if options.kind == "nats" && options.is_true("tls.enabled") {
        together(options, ["tls.crt_file", "tls.key_file"], problems);
    }
    if options.is_sink(&["splunk_hec_logs"])
        && options.equals("endpoint_target", "raw")
        && let Some(found) = options.get("auto_extract_timestamp")
    {
        forbid(
            found.path,
            "can be set only with `endpoint_target: event`",
            problems,
        );
    }
    if options.is_source(&["kafka"])
        && let Some(found) = options.get("decompression.dictionary_path")
        && !options.equals("decompression.algorithm", "zstd")
    {
        forbid(
            found.path,
            "can be set only with `algorithm: zstd`",
            problems,
        );
    }
    if options.is_sink(&["clickhouse"])
        && let Some(found) = options.get("batch_encoding")
        && !options.equals("format", "arrow_stream")
    {
        forbid(
            found.path,
            "can be set only with `format: arrow_stream`",
            problems,
        );
    }
    for (kind, queue) in QUEUES {
        if options.is_sink(&[kind]) {
            groups(options, queue, problems);
        }
    }
    if options.is_sink(&["influxdb_logs", "influxdb_metrics"]) {
        influxdb(options, problems);
    }
}

/// Validates that both options are set or none.
fn together(
    options: &ComponentOptions<'_>,
    [first, second]: [&str; 2],
    problems: &mut DiagnosticList,
) {
    let (set, missing) = match (options.has(first), options.has(second)) {
        (true, false) => (first, second),
        (false, true) => (second, first),
        _ => return,
    };
    require(
        options.path(missing),
        format!("must be set together with `{set}`"),
        problems,
    );
}

/// Validates that a message group is set exactly for a FIFO queue.
fn groups(options: &ComponentOptions<'_>, queue: &str, problems: &mut DiagnosticList) {
    let Some((path, name)) = options.text(queue) else {
        return;
    };
    let is_fifo = name
        .rsplit_once('.')
        .is_some_and(|(_, suffix)| suffix == "fifo");
    match (is_fifo, options.get("message_group_id")) {
        (false, Some(group)) => {
            let detail = format!("can be set only if `{queue}` ends with `.fifo`");
            forbid(group.path, detail, problems);
        }
        (true, None) => {
            let detail = "requires `message_group_id`: the queue is a FIFO queue";
            refuse(path, name, detail, problems);
        }
        _ => {}
    }
}

/// Options of the first and of the second version of `InfluxDB`; the first ones are all that version 1 requires.
const INFLUXDB_1: [&str; 5] = [
    "database",
    "consistency",
    "retention_policy_name",
    "username",
    "password",
];
const INFLUXDB_2: [&str; 3] = ["org", "bucket", "token"];

/// Validates that the sink has the options of one version of `InfluxDB`.
fn influxdb(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_set = |option: &&str| options.has(option);
    let (has_v1, has_v2) = if options.is_known("version") {
        (INFLUXDB_1.iter().any(is_set), INFLUXDB_2.iter().any(is_set))
    } else {
        (options.has("database"), INFLUXDB_2.iter().all(is_set))
    };
    if has_v1 && has_v2 {
        let detail = "selects InfluxDB v1, but `org`, `bucket` and `token` select v2; remove the options of one of them";
        forbid(options.path("database"), detail, problems);
    }
    let is_named = |version| options.is_known("version") && options.equals("version", version);
    if is_named("1") && has_v2 || is_named("2") && has_v1 {
        let detail = "is not the version of InfluxDB that the other options select; remove them, or change it";
        forbid(options.path("version"), detail, problems);
    }
    if !has_v1 && !has_v2 && !is_named("1") && !is_named("2") {
        let detail = "or `org`, `bucket` and `token`: they select the version of InfluxDB";
        require(options.path("database"), detail, problems);
        return;
    }
    if !options.is_known("version") {
        return;
    }
    let required = if has_v1 || is_named("1") {
        &INFLUXDB_1[..1]
    } else {
        &INFLUXDB_2[..]
    };
    for option in required.iter().filter(|option| !options.has(option)) {
        let detail = "must be set with the other options of this version of InfluxDB";
        require(options.path(option), detail, problems);
    }
}
