//! Component types, options and values of earlier versions of Vector, with what replaced them.
//!
//! They are looked up only for names that the catalogue does not contain, so that the lists may be longer than the
//! history of one version. Source: the upgrade guides and release notes of Vector (<https://vector.dev/highlights/>).

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source, Transform};

/// Advice for transforms that `remap` replaced.
macro_rules! remap {
    ($example:literal) => {
        concat!(
            "was replaced by `remap`, for example `source: \"",
            $example,
            "\"`"
        )
    };
}

/// Removed component types.
const TYPES: &[(ComponentKind, &str, &str)] = &[
    (Source, "datadog_logs", "was renamed to `datadog_agent`"),
    (Source, "docker", "was renamed to `docker_logs`"),
    (Source, "generator", "was renamed to `demo_logs`"),
    (Source, "kubernetes", "was replaced by `kubernetes_logs`"),
    (Source, "logplex", "was renamed to `heroku_logs`"),
    (Source, "prometheus", "was renamed to `prometheus_scrape`"),
    (Source, "tcp", "was replaced by `socket` with `mode: tcp`"),
    (Source, "udp", "was replaced by `socket` with `mode: udp`"),
    (Transform, "add_fields", remap!(".name = 1")),
    (Transform, "add_tags", remap!(".tags.name = \\\"value\\\"")),
    (
        Transform,
        "ansi_stripper",
        remap!(".message = strip_ansi_escape_codes!(.message)"),
    ),
    (
        Transform,
        "aws_cloudwatch_logs_subscription_parser",
        remap!(". = parse_aws_cloudwatch_log_subscription_message!(.message)"),
    ),
    (Transform, "coercer", remap!(".count = to_int!(.count)")),
    (
        Transform,
        "concat",
        remap!(".name = join!([.first, .last], \\\" \\\")"),
    ),
    (
        Transform,
        "field_filter",
        "was replaced by `filter`, for example `condition: .level == \"error\"`",
    ),
    (
        Transform,
        "geoip",
        "was replaced by an enrichment table of type `geoip`, which `remap` reads by `get_enrichment_table_record`",
    ),
    (
        Transform,
        "grok_parser",
        remap!(". |= parse_grok!(.message, \\\"PATTERN\\\")"),
    ),
    (
        Transform,
        "json_parser",
        remap!(". |= object!(parse_json!(.message))"),
    ),
    (
        Transform,
        "key_value_parser",
        remap!(". |= parse_key_value!(.message)"),
    ),
    (
        Transform,
        "kubernetes",
        "is part of the source `kubernetes_logs`",
    ),
    (
        Transform,
        "logfmt_parser",
        remap!(". |= parse_logfmt!(.message)"),
    ),
    (Transform, "merge", "was replaced by `reduce`"),
    (
        Transform,
        "regex_parser",
        remap!(". |= parse_regex!(.message, r'PATTERN')"),
    ),
    (Transform, "remove_fields", remap!("del(.name)")),
    (Transform, "remove_tags", remap!("del(.tags.name)")),
    (Transform, "rename_fields", remap!(".new = del(.old)")),
    (Transform, "sampler", "was renamed to `sample`"),
    (
        Transform,
        "split",
        remap!(".parts = split!(.message, \\\",\\\")"),
    ),
    (
        Transform,
        "swimlanes",
        "was replaced by `route`, with `route` instead of `lanes`",
    ),
    (
        Transform,
        "tokenizer",
        remap!(".tokens = parse_tokens!(.message)"),
    ),
    (Transform, "wasm", "was removed; use `remap` or `lua`"),
    (Sink, "apex", "was removed, because the service has ended"),
    (
        Sink,
        "azure_monitor_logs",
        "was replaced by `azure_logs_ingestion`",
    ),
    (Sink, "datadog", "was renamed to `datadog_metrics`"),
    (
        Sink,
        "gcp_stackdriver_logging",
        "was renamed to `gcp_stackdriver_logs`",
    ),
    (Sink, "logdna", "was renamed to `mezmo`"),
    (Sink, "new_relic_logs", "was renamed to `new_relic`"),
    (Sink, "prometheus", "was renamed to `prometheus_exporter`"),
    (
        Sink,
        "sematext",
        "was replaced by `sematext_logs` and `sematext_metrics`",
    ),
    (Sink, "splunk_hec", "was renamed to `splunk_hec_logs`"),
    (Sink, "tcp", "was replaced by `socket` with `mode: tcp`"),
];

/// Removed options: component kind and type (none: all types), path in the component.
const OPTIONS: &[(ComponentKind, Option<&str>, &str, &str)] = &[
    (
        Source,
        Some("http_server"),
        "encoding",
        "was replaced by `framing` and `decoding`",
    ),
    (
        Source,
        Some("journald"),
        "units",
        "was renamed to `include_units`",
    ),
    (
        Source,
        Some("socket"),
        "max_length",
        "was replaced by `framing.newline_delimited.max_length`",
    ),
    (
        Source,
        Some("vector"),
        "shutdown_timeout_secs",
        "was removed without a replacement; it had no effect",
    ),
    (
        Transform,
        Some("reduce"),
        "identifier_fields",
        "was renamed to `group_by`",
    ),
    (
        Transform,
        Some("remap"),
        "drop_on_err",
        "was renamed to `drop_on_error`",
    ),
    (Transform, Some("route"), "lanes", "was renamed to `route`"),
    (
        Transform,
        Some("sample"),
        "pass_list",
        "was replaced by the condition `exclude`",
    ),
    (
        Sink,
        None,
        "batch.max_size",
        "was replaced by `batch.max_bytes` and `batch.max_events`",
    ),
    (
        Sink,
        None,
        "request.in_flight_limit",
        "was renamed to `request.concurrency`",
    ),
    (Sink, None, "assume_role", "was moved to `auth.assume_role`"),
    (
        Sink,
        None,
        "auth.credential_file",
        "was renamed to `auth.credentials_file`",
    ),
    (
        Sink,
        Some("datadog_logs"),
        "api_key",
        "was renamed to `default_api_key`",
    ),
    (
        Sink,
        Some("datadog_logs"),
        "region",
        "was replaced by `site`",
    ),
    (
        Sink,
        Some("datadog_metrics"),
        "api_key",
        "was renamed to `default_api_key`",
    ),
    (
        Sink,
        Some("datadog_metrics"),
        "host",
        "was renamed to `endpoint`",
    ),
    (
        Sink,
        Some("datadog_metrics"),
        "namespace",
        "was renamed to `default_namespace`",
    ),
    (
        Sink,
        Some("datadog_metrics"),
        "region",
        "was replaced by `site`",
    ),
    (
        Sink,
        Some("elasticsearch"),
        "bulk_action",
        "was moved to `bulk.action`",
    ),
    (
        Sink,
        Some("elasticsearch"),
        "headers",
        "was moved to `request.headers`",
    ),
    (
        Sink,
        Some("elasticsearch"),
        "host",
        "was replaced by the list `endpoints`",
    ),
    (
        Sink,
        Some("elasticsearch"),
        "index",
        "was moved to `bulk.index`",
    ),
    (
        Sink,
        Some("http"),
        "headers",
        "was moved to `request.headers`",
    ),
    (
        Sink,
        Some("influxdb_logs"),
        "namespace",
        "was replaced by `measurement`",
    ),
    (
        Sink,
        Some("opentelemetry"),
        "headers",
        "was moved to `protocol.request.headers`",
    ),
    (
        Sink,
        Some("opentelemetry"),
        "protocol.headers",
        "was moved to `protocol.request.headers`",
    ),
    (
        Sink,
        Some("splunk_hec_logs"),
        "host",
        "was renamed to `endpoint`",
    ),
];

/// Removed values of options: path in the component, value.
const VALUES: &[(ComponentKind, &str, &str, &str)] = &[
    (
        Sink,
        "encoding.codec",
        "ndjson",
        "`ndjson` was replaced by `json` with `framing: {method: newline_delimited}`",
    ),
    (Sink, "mode", "normal", "`normal` was renamed to `bulk`"),
    (
        Sink,
        "buffer.type",
        "disk_v1",
        "`disk_v1` was replaced by `disk`",
    ),
];

/// Returns what became of a component type, if an earlier version of Vector had it.
pub(crate) fn component_type(family: ComponentKind, kind: &str) -> Option<&'static str> {
    let found = TYPES
        .iter()
        .find(|(of, name, _)| *of == family && *name == kind);
    found.map(|(_, _, advice)| *advice)
}

/// Returns what became of an option, if an earlier version of Vector had it.
pub(crate) fn option(family: ComponentKind, kind: &str, path: &str) -> Option<&'static str> {
    let found = OPTIONS.iter().find(|(of, types, name, _)| {
        *of == family && types.is_none_or(|types| types == kind) && *name == path
    });
    found.map(|(_, _, _, advice)| *advice)
}

/// Returns what became of a value of an option, if an earlier version of Vector had it.
pub(crate) fn value(family: ComponentKind, path: &str, value: &str) -> Option<&'static str> {
    let found = VALUES
        .iter()
        .find(|(of, option, old, _)| *of == family && *option == path && *old == value);
    found.map(|(_, _, _, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeSet;

    use lockstep_vector_vrl::{InProcessCompiler, Language, Program, Purpose};

    use crate::catalogue::Catalogue;
    use crate::vector_version::VectorVersion;

    use super::*;

    #[test]
    fn the_programs_in_the_advice_compile() {
        let mut count = 0;
        for (_, kind, advice) in TYPES {
            let Some((_, source)) = advice.split_once("`source: \"") else {
                continue;
            };
            let source = source.trim_end_matches("\"`").replace("\\\"", "\"");
            let program = Program {
                source: Cow::Borrowed(&source),
                purpose: Purpose::Remap,
                tables: Cow::Borrowed(&[]),
                denied: Cow::Owned(BTreeSet::new()),
                has_files: false,
                language: Language::NEWEST,
            };
            let found = InProcessCompiler::default().compile(&program);
            let errors: Vec<_> = found.iter().filter(|found| !found.is_advice).collect();
            assert!(errors.is_empty(), "{kind}: {source}: {errors:?}");
            count += 1;
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn removed_types_and_options_do_not_exist_in_the_newest_version() {
        let catalogue = Catalogue::of_version(VectorVersion::V0_58).expect("a catalogue");
        for (family, kind, _) in TYPES {
            assert!(catalogue.entry(*family, kind).is_none(), "{kind}");
        }
        for (family, kind, path, _) in OPTIONS {
            let kinds = kind.map_or_else(|| catalogue.kinds(*family), |kind| vec![kind]);
            let lacks = kinds.iter().any(|kind| {
                let entry = catalogue.entry(*family, kind).expect("a type of Vector");
                let options = catalogue.options(entry).list();
                // `socket` still has `max_length`, but not with `mode: tcp`.
                !options.iter().any(|option| option.path == *path) || *kind == "socket"
            });
            assert!(lacks, "{kinds:?}: {path}");
        }
    }

    /// Every option and type that an advice names in the shipped version exists there.
    #[test]
    fn replacements_exist_in_the_shipped_version() {
        let catalogue = Catalogue::shipped();
        for (family, kind, advice) in TYPES {
            let mut names = advice.split('`').skip(1).step_by(2);
            let is_type = |name: &str| {
                ComponentKind::ALL
                    .iter()
                    .any(|family| catalogue.entry(*family, name).is_some())
            };
            let exists = names.next().is_none_or(is_type);
            assert!(exists || *kind == "geoip", "{family:?} {kind}: {advice}");
        }
        for (family, kind, _, advice) in OPTIONS {
            let kinds = kind.map_or_else(|| catalogue.kinds(*family), |kind| vec![kind]);
            let mut lists = kinds.into_iter().map(|kind| {
                let entry = catalogue.entry(*family, kind).expect("a type of Vector");
                catalogue.options(entry).list()
            });
            let names: Vec<_> = advice.split('`').skip(1).step_by(2).collect();
            let has_all = |options: Vec<crate::option_list::OptionEntry>| {
                names
                    .iter()
                    .all(|name| options.iter().any(|option| option.path == **name))
            };
            assert!(lists.any(has_all), "{kind:?}: {advice}");
        }
    }
}
