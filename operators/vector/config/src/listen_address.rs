//! Listen addresses of components. Two components cannot listen on the same address.

use std::collections::BTreeMap;
use std::fmt;

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::component::{Component, ComponentKind, KUBERNETES_EVENTS, components};
use crate::diagnostic::{Check, DiagnosticList};
use crate::option_format::Listening;

/// Address that a component listens on: the protocol, and the address as Vector compares it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenAddress {
    /// `tcp`, `udp`, `systemd` or `fd`. The last two are a socket or a descriptor that is passed to the process.
    pub protocol: &'static str,
    /// Address, such as `0.0.0.0:9000`.
    pub endpoint: String,
    /// Option that contains the address.
    pub option: &'static str,
}

impl ListenAddress {
    /// Returns the path of the option in a component.
    #[must_use]
    pub fn path(&self, component: &Component<'_>) -> FieldPath {
        let names = self.option.split('.');
        names.fold(FieldPath::new(component.path()), |path, name| {
            path.child(name)
        })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol, self.endpoint)
    }
}

/// Reports components of one configuration that listen on the same address.
pub(crate) fn validate(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    let mut claimed: BTreeMap<(&str, String), Component<'_>> = BTreeMap::new();
    for component in components(config) {
        for address in of(&component) {
            let key = (address.protocol, address.endpoint.clone());
            match claimed.get(&key) {
                Some(other) if other.id == component.id => {}
                Some(other) => {
                    let path = address.path(&component);
                    let detail = format!(
                        "{address} is already used by {} `{}`",
                        other.family.noun(),
                        other.id
                    );
                    let error = FieldError::invalid(path, address.endpoint, detail);
                    problems.add(Check::Topology, error);
                }
                None => drop(claimed.insert(key, component)),
            }
        }
    }
}

/// Returns the addresses that a component listens on.
#[must_use]
pub fn of(component: &Component<'_>) -> Vec<ListenAddress> {
    let text = |option: &str| {
        let mut names = option.split('.');
        let first = component.option(names.next()?)?;
        names
            .try_fold(first, |value, name| value.get(name))?
            .as_str()
    };
    let at = |protocol: &'static str, option: &'static str, default: Option<&str>| {
        let (protocol, endpoint) = match Listening::read(text(option).or(default)?)? {
            Listening::At(address) => (protocol, address.to_string()),
            Listening::Given(number) => ("systemd", number.to_string()),
        };
        Some(ListenAddress {
            protocol,
            endpoint,
            option,
        })
    };
    let kind = component.kind().unwrap_or_default();
    let mode = text("mode").unwrap_or_default();
    let claims = match (component.family, kind, mode) {
        (ComponentKind::Source, "socket" | "syslog" | "statsd" | KUBERNETES_EVENTS, "udp") => {
            vec![at("udp", "address", None)]
        }
        // See `unix_socket`.
        (ComponentKind::Source, _, "unix" | "unix_datagram" | "unix_stream") => Vec::new(),
        (ComponentKind::Source, "opentelemetry", _) => {
            vec![
                at("tcp", "grpc.address", None),
                at("tcp", "http.address", None),
            ]
        }
        (ComponentKind::Source, "splunk_hec", _) => {
            vec![at("tcp", "address", Some("0.0.0.0:8088"))]
        }
        (
            ComponentKind::Source,
            "aws_kinesis_firehose"
            | "datadog_agent"
            | "fluent"
            | "heroku_logs"
            | "http"
            | "http_server"
            | KUBERNETES_EVENTS
            | "logstash"
            | "prometheus_pushgateway"
            | "prometheus_remote_write"
            | "socket"
            | "statsd"
            | "syslog"
            | "vector",
            _,
        )
        | (ComponentKind::Source, "dnstap", "tcp")
        | (ComponentKind::Sink, "websocket_server", _) => vec![at("tcp", "address", None)],
        (ComponentKind::Sink, "prometheus_exporter", _) => {
            vec![at("tcp", "address", Some("0.0.0.0:9598"))]
        }
        (ComponentKind::Source, "stdin", _) => vec![Some(ListenAddress {
            protocol: "fd",
            endpoint: "0".to_owned(),
            option: "type",
        })],
        (ComponentKind::Source, "file_descriptor", _) => {
            let fd = component.option("fd").and_then(Value::as_u64);
            let endpoint = fd.map(|fd| fd.to_string());
            vec![endpoint.map(|endpoint| ListenAddress {
                protocol: "fd",
                endpoint,
                option: "fd",
            })]
        }
        _ => Vec::new(),
    };
    claims.into_iter().flatten().collect()
}
