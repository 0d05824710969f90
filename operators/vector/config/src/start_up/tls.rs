//! TLS material that is given inline, and options of TLS that belong together.

use lockstep_shared_validation::FieldPath;
use x509_parser::parse_x509_certificate;

use crate::diagnostic::DiagnosticList;
use crate::interpolation::Interpolation;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};
use crate::start_up::sink_traits::SinkTrait;

/// Sources that are servers: type, option.
const SERVERS: &[(&str, &str)] = &[
    ("aws_kinesis_firehose", "tls"),
    ("datadog_agent", "tls"),
    ("heroku_logs", "tls"),
    ("http", "tls"),
    ("http_server", "tls"),
    ("logstash", "tls"),
    ("opentelemetry", "grpc.tls"),
    ("opentelemetry", "http.tls"),
    ("prometheus_pushgateway", "tls"),
    ("prometheus_remote_write", "tls"),
    ("splunk_hec", "tls"),
    ("vector", "tls"),
];

/// Sources that are TLS servers in the mode `tcp`.
const TCP_SERVERS: &[&str] = &["dnstap", "fluent", "socket", "statsd", "syslog"];

/// Sources that are TLS clients.
const CLIENTS: &[&str] = &[
    "aws_sqs",
    "gcp_pubsub",
    "http_client",
    "nginx_metrics",
    "okta",
    "prometheus_scrape",
];

/// Sources that are TLS clients, if `tls.enabled` is true.
const SWITCHED_CLIENTS: &[&str] = &["mqtt", "websocket"];

/// Sinks that are TLS clients, if `tls.enabled` is true, and have no HTTP client.
const SWITCHED_SINKS: &[&str] = &["mqtt", "papertrail", "websocket"];

/// Maximum length of the name of a protocol in bytes.
const MAX_PROTOCOL: usize = 255;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_enabled = |option: &str| options.is_true(&format!("{option}.enabled"));
    let is_tcp_sink = options.is_sink(&["socket"]) && options.equals("mode", "tcp");
    let is_switched = is_tcp_sink
        || options.has_trait(SinkTrait::SwitchedTls)
        || options.is_source(SWITCHED_CLIENTS)
        || options.is_sink(SWITCHED_SINKS);
    let is_client = options.has_trait(SinkTrait::Tls) || options.is_source(CLIENTS);
    if is_client || is_switched && is_enabled("tls") {
        if file(options, "tls", "crt_file").is_none() && file(options, "tls", "key_file").is_some()
        {
            let detail = "must be set together with `key_file`";
            require(options.path("tls.crt_file"), detail, problems);
        }
        material(options, "tls", problems);
    }
    if options.kind == "kafka" && is_enabled("tls") {
        material_of_kafka(options, problems);
    }
    let servers = SERVERS
        .iter()
        .filter(|(kind, _)| options.is_source(&[kind]));
    let mut servers: Vec<_> = servers.map(|(_, option)| *option).collect();
    let is_tcp = options.is_source(TCP_SERVERS) && options.equals("mode", "tcp");
    if is_tcp || options.is_sink(&["websocket_server"]) {
        servers.push("tls");
    }
    for option in servers.into_iter().filter(|option| is_enabled(option)) {
        let certificate = file(options, option, "crt_file");
        if certificate.is_none() {
            let detail = "must be set if `enabled` is true: a server needs a certificate";
            require(
                options.path(&format!("{option}.crt_file")),
                detail,
                problems,
            );
        }
        material(options, option, problems);
    }
}

/// Validates the material that Vector reads for a client or a server.
fn material(options: &ComponentOptions<'_>, tls: &str, problems: &mut DiagnosticList) {
    let (certificate, key) = (
        file(options, tls, "crt_file"),
        file(options, tls, "key_file"),
    );
    if let (Some((_, text)), None) = (&certificate, &key)
        && is_inline(text, options.interpolation)
    {
        let detail = "must be set together with `crt_file`";
        require(options.path(&format!("{tls}.key_file")), detail, problems);
    }
    if let Some((path, text)) = &key
        && certificate.is_some()
        && is_inline(text, options.interpolation)
        && !has_key(text)
    {
        forbid(
            path.clone(),
            "has no private key that can be read",
            problems,
        );
    }
    let authority = file(options, tls, "ca_file");
    // Without a key, Vector reads the certificate as an archive that contains both.
    let certificate = certificate.filter(|_| key.is_some());
    for (path, text) in [authority, certificate].into_iter().flatten() {
        if is_inline(text, options.interpolation) && !has_certificate(text) {
            forbid(path, "has no certificate that can be read", problems);
        }
    }
    for (path, protocol) in options.texts(&format!("{tls}.alpn_protocols")) {
        if protocol.is_empty() || protocol.len() > MAX_PROTOCOL {
            let detail = "must be the name of a protocol with 1 to 255 bytes, such as `h2`";
            refuse(path, protocol, detail, problems);
        }
    }
}

/// Validates the material that librdkafka reads. It has no other rules of Vector.
fn material_of_kafka(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for name in ["ca_file", "crt_file"] {
        if let Some((path, text)) = file(options, "tls", name)
            && is_inline(text, options.interpolation)
            && !has_certificate(text)
        {
            forbid(path, "has no certificate that can be read", problems);
        }
    }
}

/// Returns the value of an option for a file, by its name or its alias.
pub(crate) fn file<'a>(
    options: &ComponentOptions<'a>,
    tls: &str,
    name: &str,
) -> Option<(FieldPath, &'a str)> {
    let alias = name.replace("_file", "_path");
    let found = options
        .get(&format!("{tls}.{name}"))
        .or_else(|| options.get(&format!("{tls}.{alias}")))?;
    Some((found.path, found.value.as_str()?))
}

/// Returns true if a value is not the path of a file but its content.
fn is_inline(text: &str, interpolation: Interpolation) -> bool {
    !interpolation.is_replaced(text) && text.contains("-----BEGIN ")
}

fn has_key(text: &str) -> bool {
    let blocks = pem::parse_many(text).unwrap_or_default();
    blocks
        .iter()
        .any(|block| block.tag().ends_with("PRIVATE KEY"))
}

fn has_certificate(text: &str) -> bool {
    let blocks = pem::parse_many(text).unwrap_or_default();
    let mut certificates = blocks
        .iter()
        .filter(|block| block.tag().ends_with("CERTIFICATE"));
    certificates.any(|block| parse_x509_certificate(block.contents()).is_ok())
}
