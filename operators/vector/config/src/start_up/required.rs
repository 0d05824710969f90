//! Options that the schema shows as optional and that the start requires.

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source};
use crate::diagnostic::{Check, DiagnosticList};
use crate::start_up::component_options::{ComponentOptions, require};
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
