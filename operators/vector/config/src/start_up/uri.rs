//! URIs of services, as Vector joins them from its options.

use http_02::Uri;
use http_02::uri::InvalidUri;
use lockstep_shared_validation::FieldPath;
use serde_json::Value;
use url::Url;

use crate::component::{ComponentKind, components};
use crate::diagnostic::{Diagnostic, DiagnosticList};
use crate::start_up::component_options::{ComponentOptions, refuse};
use crate::start_up::joined_uri::joined;

/// Parses a URI with the library in the version that Vector uses: later versions accept other characters.
pub(crate) fn parse(text: &str) -> Result<Uri, InvalidUri> {
    text.parse()
}

/// Schemes of HTTP.
const HTTP: [&str; 2] = ["http", "https"];

/// Schemes of the addresses of Docker.
const DOCKER: [&str; 5] = ["http", "https", "npipe", "tcp", "unix"];

/// Maximum length of a DNS name in bytes.
const LONGEST_NAME: usize = 253;

/// Options that are URIs as they are written.
const PLAIN: &[(&str, &str)] = &[
    ("sinks/azure_logs_ingestion", "endpoint"),
    ("sinks/datadog_metrics", "endpoint"),
    ("sinks/datadog_traces", "endpoint"),
    ("sinks/keep", "endpoint"),
    ("sinks/prometheus_remote_write", "endpoint"),
    ("sinks/vector", "address"),
    ("sinks/websocket", "uri"),
    ("sources/apache_metrics", "endpoints"),
    ("sources/eventstoredb_metrics", "endpoint"),
    ("sources/gcp_pubsub", "endpoint"),
    ("sources/http_client", "endpoint"),
    ("sources/nginx_metrics", "endpoints"),
    ("sources/okta", "domain"),
    ("sources/prometheus_scrape", "endpoints"),
    ("sources/websocket", "uri"),
    ("transforms/aws_ec2_metadata", "endpoint"),
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let component = format!("{}/{}", options.family.block(), options.kind);
    let plain = PLAIN.iter().filter(|(name, _)| *name == component);
    let is_url = |option: &str| options.is_http_endpoint(option) || options.has_text_endpoint();
    for (_, option) in plain.filter(|(_, option)| !is_url(option)) {
        let mut texts = options.texts(option);
        texts.extend(options.text(option));
        for (path, text) in texts {
            match parse(text) {
                Ok(uri) => own(&component, options, path, text, &uri, problems),
                Err(error) => refuse(path, text, not_a_uri(&error), problems),
            }
        }
    }
    docker_host(options, problems);
    first_request(options, problems);
    for (path, text, uri) in joined(&component, options) {
        let detail = match parse(&uri) {
            Ok(uri) => of_http_client(&component, &uri).map(str::to_owned),
            Err(error) => Some(not_a_uri(&error)),
        };
        if let Some(detail) = detail {
            refuse(path, text, detail, problems);
        }
    }
}

fn not_a_uri(error: &InvalidUri) -> String {
    format!("must be a URI with a scheme and a host, such as `https://example.com:8080`: {error}")
}

/// Validates what the HTTP client of a sink requires of its URI.
fn of_http_client(component: &str, uri: &Uri) -> Option<&'static str> {
    let has_scheme_of_http = uri.scheme_str().is_none_or(|it| HTTP.contains(&it));
    match component {
        "sinks/gcp_cloud_storage" | "sinks/loki" if !has_scheme_of_http => {
            Some("must have the scheme `https` or `http`")
        }
        "sinks/azure_monitor_logs" | "sinks/sematext_logs" if !has_valid_authority(uri) => {
            Some("must have a host and, if any, a port from 0 to 65535")
        }
        _ => None,
    }
}

/// Returns true if the host and port of a URI are those of a URL, too: the library for URLs knows the ranges of ports
/// and of IP addresses.
pub(crate) fn has_valid_authority(uri: &Uri) -> bool {
    let authority = uri.authority();
    authority.is_some_and(|it| Url::parse(&format!("http://{it}")).is_ok())
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
            let is_http = scheme.is_none_or(|scheme| HTTP.contains(&scheme));
            let is_complete = !has_host || has_valid_authority(uri);
            (!is_http)
                .then_some("must have the scheme `https` or `http`")
                .or((!is_complete).then_some(
                    "must have a host and, if any, a port from 0 to 65535: Vector panics at start",
                ))
        }
        "sinks/vector" => {
            // An authority without a host needs at least a port.
            let authority = uri.authority();
            let is_empty =
                authority.is_some_and(|it| it.host().is_empty() && it.port_u16().is_none());
            let is_complete = (scheme.is_some() || has_host) && !is_empty;
            (!is_complete).then_some("must have a host, such as `example.com:6000`")
        }
        "sinks/websocket" | "sources/websocket" => {
            let is_websocket = ["ws://", "wss://"]
                .iter()
                .any(|scheme| text.starts_with(scheme));
            (!is_websocket || !has_host).then_some("must begin with `ws://` or `wss://` and a host")
        }
        "sources/okta" => (!has_host).then_some("must be a host, such as `example.okta.com`"),
        "sources/gcp_pubsub" => {
            let is_bare = scheme.is_none() && has_host && options.has("api_key");
            let is_used = !options.is_true("skip_authentication");
            let is_named = scheme == Some("http") || uri.host().is_none_or(is_dns_name);
            (is_bare && is_used)
                .then_some("must begin with `http://` or `https://`")
                .or((!is_named)
                    .then_some("must have the name of a host, which its certificate contains"))
        }
        "transforms/aws_ec2_metadata" => {
            let is_required = !options.is_false("required");
            let is_bare = scheme.is_none();
            (is_bare && is_required).then_some("must begin with `http://` or `https://`")
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

/// Reports the URIs of `http` sinks that have no scheme or no host. Vector 0.57 starts with them, and rejects each event; later
/// versions do not start. Such a value in a Secret is not visible before it is used.
#[must_use]
pub fn validate_http_hosts(config: &Value) -> Vec<Diagnostic> {
    let mut problems = DiagnosticList::default();
    for component in config.as_object().into_iter().flat_map(components) {
        let uri = component.option("uri").and_then(Value::as_str);
        let Some(uri) = uri.filter(|_| {
            component.family == ComponentKind::Sink && component.kind() == Some("http")
        }) else {
            continue;
        };
        let is_complete = |uri: Uri| {
            uri.scheme_str()
                .is_some_and(|scheme| HTTP.contains(&scheme))
                && uri.host().is_some()
        };
        if !uri.contains("{{") && !parse(uri).is_ok_and(is_complete) {
            let detail =
                "must be a URI with a scheme and a host, such as `https://example.com:8080`";
            refuse(
                FieldPath::new(component.path()).child("uri"),
                uri,
                detail,
                &mut problems,
            );
        }
    }
    problems.into_diagnostics()
}

/// Returns true if a program computes a query parameter: Vector then builds the URI of each request.
fn has_program(options: &ComponentOptions<'_>) -> bool {
    let query = options.get("query");
    let values = query
        .as_ref()
        .and_then(|found| found.value.as_object())
        .into_iter()
        .flatten();
    let is_program = |value: &Value| value["type"] == "vrl";
    values.into_iter().any(|(_, value)| {
        is_program(value)
            || value
                .as_array()
                .is_some_and(|items| items.iter().any(is_program))
    })
}

/// Validates the address of Docker. One that is not a URI, such as `unix:///var/run/docker.sock`, is the path of a socket.
fn docker_host(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.is_source(&["docker_logs"])
        && let Some((path, text)) = options.text("docker_host")
        && let Ok(uri) = parse(text)
        && let Some(scheme) = uri.scheme_str()
        && !DOCKER.contains(&scheme)
    {
        let detail = "must have the scheme `http`, `https`, `tcp`, `unix` or `npipe`";
        refuse(path, text, detail, problems);
    }
}

/// Validates the URIs of sinks that parse them for the first request, on whose errors they panic.
fn first_request(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.is_sink(&["http"])
        && let Some((path, text)) = options.text("uri")
        && !text.contains(['{', '%'])
        && parse(text).is_ok_and(|uri| uri.authority().is_some() && !has_valid_authority(&uri))
    {
        let detail = "must have a host and, if any, a port from 0 to 65535: Vector panics at the first event";
        refuse(path, text, detail, problems);
    }
    if options.is_sink(&["greptimedb_logs"])
        && !options.is_http_endpoint("endpoint")
        && let Some((path, text)) = options.text("endpoint")
        && Url::parse(&format!("{text}/v1/events/logs")).is_err()
    {
        let detail =
            "must be a URL, such as `http://example.com:4000`: Vector panics at the first event";
        refuse(path, text, detail, problems);
    }
}

/// Returns true if a host can be the name in a certificate, which an IPv6 address in brackets cannot.
fn is_dns_name(host: &str) -> bool {
    let is_label =
        |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    let name = host.strip_suffix('.').unwrap_or(host);
    !host.starts_with('[') && host.len() <= LONGEST_NAME && name.split('.').all(is_label)
}
