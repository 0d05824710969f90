//! Options that the schema shows as optional and that the start requires.

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source};
use crate::diagnostic::{Check, DiagnosticList};
use crate::start_up::component_options::{ComponentOptions, forbid, require};
use lockstep_shared_validation::FieldError;

/// Component that requires one of some options.
struct Required {
    family: ComponentKind,
    kinds: &'static [&'static str],
    any_of: &'static [&'static str],
}

const REQUIRED: &[Required] = &[
    Required {
        family: Sink,
        kinds: &[
            "datadog_events",
            "datadog_logs",
            "datadog_metrics",
            "datadog_traces",
        ],
        any_of: &["default_api_key"],
    },
    Required {
        family: Sink,
        kinds: &["doris"],
        any_of: &["endpoints"],
    },
    Required {
        family: Sink,
        kinds: &["gcp_chronicle_unstructured"],
        any_of: &["endpoint", "region"],
    },
    Required {
        family: Sink,
        kinds: &["influxdb_logs"],
        any_of: &["measurement", "namespace"],
    },
    Required {
        family: Sink,
        kinds: &["vector"],
        any_of: &["address", "routing.endpoints"],
    },
    Required {
        family: Source,
        kinds: &["aws_s3"],
        any_of: &["sqs"],
    },
];

/// Sinks whose `tls` requires all of its files.
const WITH_ALL_FILES: &[&str] = &["greptimedb", "greptimedb_metrics"];

/// Options that disable a part of the source `datadog_agent`.
const DATADOG_AGENT: [&str; 3] = ["disable_logs", "disable_metrics", "disable_traces"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_set = |option: &str| {
        let found = options.get(option);
        found.is_some_and(|found| found.value.as_array().is_none_or(|items| !items.is_empty()))
    };
    for required in REQUIRED {
        let applies = options.family == required.family && required.kinds.contains(&options.kind);
        if applies && !required.any_of.iter().any(|option| is_set(option)) {
            let (first, others) = required.any_of.split_first().expect("an option");
            let detail = match others {
                [] => "Vector does not start without it".to_owned(),
                others => format!(
                    "or `{}`: Vector does not start without one of them",
                    others.join("`, `")
                ),
            };
            require(options.path(first), detail, problems);
        }
    }
    let is_signed = options.equals("auth.strategy", "aws");
    if options.is_sink(&["prometheus_remote_write"]) && is_signed && !options.has("aws.region") {
        let detail = "must be set with `auth.strategy: aws`";
        require(options.path("aws.region"), detail, problems);
    }
    if options.is_source(&["datadog_agent"])
        && DATADOG_AGENT.iter().all(|option| options.is_true(option))
    {
        let detail = "logs, metrics and traces cannot all be disabled";
        forbid(options.path(DATADOG_AGENT[0]), detail, problems);
    }
    if options.equals("decoding.codec", "protobuf")
        && options
            .get("decoding.protobuf.desc_file")
            .is_none_or(|file| file.value == "")
    {
        let detail = "must be the path of a file with the descriptors of the messages";
        require(
            options.path("decoding.protobuf.desc_file"),
            detail,
            problems,
        );
    }
    if options.is_sink(&["aws_s3"])
        && options.equals("batch_encoding.codec", "parquet")
        && !options.equals("batch_encoding.schema_mode", "auto_infer")
        && !options.has("batch_encoding.schema_file")
    {
        let detail = "must be set unless `schema_mode` is `auto_infer`";
        require(options.path("batch_encoding.schema_file"), detail, problems);
    }
    if options.is_sink(WITH_ALL_FILES) && options.has("tls") {
        for file in ["tls.ca_file", "tls.crt_file", "tls.key_file"] {
            if !options.has(file) {
                let detail = "`tls` requires `ca_file`, `crt_file` and `key_file`";
                require(options.path(file), detail, problems);
            }
        }
    }
    if options.is_source(&["windows_event_log"]) {
        let path = options.path("type");
        let detail = "is available only on Windows";
        problems.add(
            Check::StartUp,
            FieldError::invalid(path, options.kind, detail),
        );
    }
}
