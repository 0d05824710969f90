//! Tests of checks that depend on several options.

use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::confinement::OptOut;
use crate::interpolation::Interpolation;
use crate::start_up::validate_start_up;
use crate::vector_version::VectorVersion;

const BROKEN: &str = "-----BEGIN CERTIFICATE-----\nnot\n-----END CERTIFICATE-----";

fn paths(block: &str, component: &Value) -> Vec<String> {
    paths_with(Interpolation::Off, block, component)
}

/// Returns the paths with problems below a component.
pub(crate) fn paths_with(
    interpolation: Interpolation,
    block: &str,
    component: &Value,
) -> Vec<String> {
    let config = json!({ (block): {"x": component} });
    let found = validate_start_up(Catalogue::shipped(), &config, OptOut::Author, interpolation);
    let prefix = format!("{block}[x].");
    let paths = found.iter().map(|problem| {
        let path = problem.error.path.to_string();
        path.strip_prefix(&prefix).unwrap_or(&path).to_owned()
    });
    paths.collect()
}

/// A list of problems that a version may not have is limited, and those that it has are still found.
#[test]
fn rules_of_later_versions_keep_out_none_of_the_first_ones() {
    let limits = (0..200).map(|index| {
        let limit = json!({"mode": "probabilistic", "cache_size_per_key": 0});
        (format!("m{index}"), limit)
    });
    let limits: serde_json::Map<_, _> = limits.collect();
    let config = json!({
        "transforms": {"t": {
            "type": "tag_cardinality_limit", "inputs": ["in"], "mode": "exact", "per_metric_limits": limits,
        }},
        "sinks": {"out": {
            "type": "http", "inputs": ["t"], "uri": "http://h/", "encoding": {"codec": "json"},
            "batch": {"max_events": 0},
        }},
    });
    let found = validate_start_up(
        Catalogue::shipped(),
        &config,
        OptOut::Author,
        Interpolation::Off,
    );
    let later = found
        .iter()
        .filter(|problem| problem.since == VectorVersion::V0_57);
    assert!(later.count() > 100, "{found:?}");
    let version = VectorVersion::parse("0.48").expect("a version");
    let held = found.iter().filter(|problem| problem.is_of(version));
    let paths: Vec<_> = held.map(|problem| problem.error.path.to_string()).collect();
    assert_eq!(paths, ["sinks[out].batch.max_events"]);
}

#[test]
fn the_address_of_docker_may_be_the_path_of_a_socket() {
    let source = |host: &str| {
        paths(
            "sources",
            &json!({"type": "docker_logs", "docker_host": host}),
        )
    };
    for host in [
        "unix:///var/run/docker.sock",
        "npipe:////./pipe/docker_engine",
        r"\\.\pipe\docker_engine",
        "/var/run/docker.sock",
        "tcp://docker:2375",
    ] {
        assert_eq!(source(host), Vec::<String>::new(), "{host}");
    }
    assert_eq!(source("ssh://docker"), ["docker_host"]);
}

#[test]
fn names_of_headers_and_parameters_may_be_patterns() {
    for (kind, options, path) in [
        ("http", json!({"headers": ["[*"]}), "headers[0]"),
        (
            "http_server",
            json!({"query_parameters": ["[*"]}),
            "query_parameters[0]",
        ),
        (
            "heroku_logs",
            json!({"query_parameters": ["[*"]}),
            "query_parameters[0]",
        ),
        (
            "aws_kinesis_firehose",
            json!({"common_attributes": ["[*"], "store_access_key": false}),
            "common_attributes[0]",
        ),
        (
            "opentelemetry",
            json!({"http": {"address": "0.0.0.0:1", "headers": ["[*"]}}),
            "http.headers[0]",
        ),
    ] {
        let mut source = json!({"type": kind, "address": "0.0.0.0:1"});
        for (name, value) in options.as_object().into_iter().flatten() {
            source[name] = value.clone();
        }
        assert_eq!(paths("sources", &source), [path], "{kind}");
        let text = source.to_string().replace("[*", "[");
        let without = serde_json::from_str(&text).expect("JSON");
        assert_eq!(paths("sources", &without), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn clients_and_servers_need_readable_material() {
    let key_only = json!({"enabled": true, "key_file": "/k"});
    for (block, component) in [
        (
            "sinks",
            json!({"type": "socket", "mode": "tcp", "address": "a:1"}),
        ),
        ("sinks", json!({"type": "papertrail", "endpoint": "a:1"})),
        ("sinks", json!({"type": "websocket", "uri": "ws://a:1"})),
        ("sinks", json!({"type": "mqtt", "host": "a", "topic": "t"})),
        (
            "sources",
            json!({"type": "mqtt", "host": "a", "topic": "t"}),
        ),
        ("sources", json!({"type": "websocket", "uri": "ws://a:1"})),
    ] {
        let mut component = component;
        component["tls"] = key_only.clone();
        assert_eq!(paths(block, &component), ["tls.crt_file"], "{component}");
        component["tls"]["enabled"] = json!(false);
        assert_eq!(
            paths(block, &component),
            Vec::<String>::new(),
            "{component}"
        );
    }
    let server = |tls: Value| {
        paths(
            "sources",
            &json!({"type": "http_server", "address": "0.0.0.0:1", "tls": tls}),
        )
    };
    let tls = |crt: &str, key: &str| json!({"enabled": true, "crt_file": crt, "key_file": key});
    assert_eq!(server(tls("/c", "/k")), Vec::<String>::new());
    assert_eq!(server(tls(BROKEN, "/k")), ["tls.crt_file"]);
    assert_eq!(server(tls("/c", BROKEN)), ["tls.key_file"]);
    let without_key = json!({"enabled": true, "crt_file": BROKEN});
    assert_eq!(server(without_key), ["tls.key_file"]);
}

#[test]
fn a_kerberos_command_of_its_own_needs_no_keytab() {
    let sink = |properties: Value| {
        let sasl = json!({"enabled": true, "mechanism": "GSSAPI"});
        let sink = json!({
            "type": "kafka", "bootstrap_servers": "a:1", "topic": "t", "sasl": sasl,
            "librdkafka_options": properties,
        });
        paths("sinks", &sink)
    };
    assert_eq!(sink(json!({})), ["sasl.mechanism"]);
    let command = "sasl.kerberos.kinit.cmd";
    assert_eq!(sink(json!({(command): "true"})), Vec::<String>::new());
    let default = "kinit -k -t %{sasl.kerberos.keytab}";
    assert_eq!(sink(json!({(command): default})), ["sasl.mechanism"]);
}

#[test]
fn a_header_may_have_characters_outside_ascii() {
    let sink = |organization: &str| {
        let sink = json!({"type": "axiom", "dataset": "d", "token": "t", "org_id": organization});
        paths("sinks", &sink)
    };
    assert_eq!(sink("é"), Vec::<String>::new());
    assert_eq!(sink("a\nb"), ["org_id"]);
}

#[test]
fn the_request_rate_of_every_limited_sink_is_validated() {
    for sink in [
        json!({"type": "greptimedb", "endpoint": "a:1"}),
        json!({"type": "redis", "endpoint": "redis://a", "key": "k"}),
    ] {
        let mut sink = sink;
        sink["request"] = json!({"rate_limit_num": 0});
        assert_eq!(paths("sinks", &sink), ["request.rate_limit_num"], "{sink}");
    }
}
