//! URIs of services, as Vector joins them from its options.

use http_02::Uri;
use http_02::uri::InvalidUri;
use lockstep_shared_validation::FieldPath;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, refuse};

/// Parses a URI with the library in the version that Vector uses: later versions accept other characters.
pub(crate) fn parse(text: &str) -> Result<Uri, InvalidUri> {
    text.parse()
}

/// Options that are URIs as they are written.
const PLAIN: &[(&str, &str)] = &[
    ("sinks/azure_logs_ingestion", "endpoint"),
    ("sinks/keep", "endpoint"),
    ("sinks/prometheus_remote_write", "endpoint"),
    ("sinks/vector", "address"),
    ("sinks/websocket", "uri"),
    ("sources/apache_metrics", "endpoints"),
    ("sources/eventstoredb_metrics", "endpoint"),
    ("sources/http_client", "endpoint"),
    ("sources/nginx_metrics", "endpoints"),
    ("sources/prometheus_scrape", "endpoints"),
    ("sources/websocket", "uri"),
    ("transforms/aws_ec2_metadata", "endpoint"),
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let component = format!("{}/{}", options.family.block(), options.kind);
    for (_, option) in PLAIN.iter().filter(|(name, _)| *name == component) {
        let mut texts = options.texts(option);
        texts.extend(options.text(option));
        for (path, text) in texts {
            match parse(text) {
                Ok(uri) => own(&component, options, path, text, &uri, problems),
                Err(error) => refuse(path, text, not_a_uri(&error), problems),
            }
        }
    }
    for (path, text, uri) in joined(&component, options) {
        if let Err(error) = parse(&uri) {
            refuse(path, text, not_a_uri(&error), problems);
        }
    }
}

fn not_a_uri(error: &InvalidUri) -> String {
    format!("must be a URI with a scheme and a host, such as `https://example.com:8080`: {error}")
}

/// Validates what a component requires of its URI besides that it can be parsed.
fn own(
    component: &str,
    options: &ComponentOptions<'_>,
    path: FieldPath,
    text: &str,
    uri: &Uri,
    problems: &mut DiagnosticList,
) {
    let scheme = uri.scheme_str();
    let has_host = uri.authority().is_some();
    let detail = match component {
        "sinks/azure_logs_ingestion" => {
            let is_http = scheme.is_none_or(|scheme| ["http", "https"].contains(&scheme));
            (!is_http).then_some("must have the scheme `https` or `http`")
        }
        "sinks/vector" => {
            let is_complete = scheme.is_some() || has_host;
            (!is_complete).then_some("must have a host, such as `example.com:6000`")
        }
        "sinks/websocket" | "sources/websocket" => {
            let is_websocket = ["ws://", "wss://"]
                .iter()
                .any(|scheme| text.starts_with(scheme));
            (!is_websocket || !has_host).then_some("must begin with `ws://` or `wss://` and a host")
        }
        // Vector panics on a host without scheme.
        "sources/prometheus_scrape" | "sources/http_client" => {
            let is_bare = scheme.is_none() && has_host && !has_program(options);
            is_bare.then_some("must begin with `http://` or `https://`")
        }
        _ => None,
    };
    if let Some(detail) = detail {
        refuse(path, text, detail, problems);
    }
}

/// Returns true if a program computes a query parameter: Vector then builds the URI of each request.
fn has_program(options: &ComponentOptions<'_>) -> bool {
    let query = options.get("query");
    let values = query
        .as_ref()
        .and_then(|found| found.value.as_object())
        .into_iter()
        .flatten();
    let is_program = |value: &serde_json::Value| value["type"] == "vrl";
    values.into_iter().any(|(_, value)| {
        is_program(value)
            || value
                .as_array()
                .is_some_and(|items| items.iter().any(is_program))
    })
}

/// Returns the URIs that a component joins from its options: the option to report, its text, the URI.
fn joined<'a>(
    component: &str,
    options: &ComponentOptions<'a>,
) -> Vec<(FieldPath, &'a str, String)> {
    let from = |option: &str, join: &dyn Fn(&str) -> String| {
        let found = options.text(option);
        found
            .map(|(path, text)| (path, text, join(text)))
            .into_iter()
            .collect::<Vec<_>>()
    };
    let below = |text: &str, path: &str| {
        let separator = if text.ends_with('/') { "" } else { "/" };
        format!("{text}{separator}{path}")
    };
    match component {
        "sinks/appsignal" => from("endpoint", &|text| below(text, "vector/healthcheck")),
        "sinks/gcp_pubsub" => {
            let mut found = from("endpoint", &|text| format!("{text}/v1/projects/p/topics/t"));
            found.extend(from("project", &|text| {
                format!("https://h/v1/projects/{text}/topics/t")
            }));
            found.extend(from("topic", &|text| {
                format!("https://h/v1/projects/p/topics/{text}")
            }));
            found
        }
        "sinks/honeycomb" => {
            let mut found = from("endpoint", &|text| {
                format!("{}/1/batch/d", text.trim_end_matches('/'))
            });
            found.extend(from("dataset", &|text| {
                format!("https://api.honeycomb.io/1/batch/{text}")
            }));
            found
        }
        "sinks/influxdb_logs" | "sinks/influxdb_metrics" => {
            from("endpoint", &|text| below(text, "ping"))
        }
        "sinks/loki" => loki(options),
        "sinks/sematext_metrics" => from("endpoint", &|text| below(text, "write")),
        "sinks/datadog_logs" => from("site", &|text| {
            format!("https://api.{text}/api/v1/validate")
        }),
        _ => Vec::new(),
    }
}

fn loki<'a>(options: &ComponentOptions<'a>) -> Vec<(FieldPath, &'a str, String)> {
    let push = "loki/api/v1/push";
    let mut found = Vec::new();
    if let Some((path, text)) = options.text("endpoint") {
        // The rest of the endpoint is dropped.
        let kept = text
            .split('#')
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        found.push((path, text, format!("{kept}/{push}")));
    }
    if let Some((path, text)) = options.text("path") {
        found.push((
            path,
            text,
            format!("http://h/{}", text.trim_start_matches('/')),
        ));
    }
    found
}
