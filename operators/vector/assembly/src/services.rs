//! Ports on which an aggregator serves a pipeline.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use lockstep_vector_config::{Component, ComponentKind, listen_address};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kebab_case::kebab_case;
use crate::pipeline::PipelineKey;

/// Annotation of a pipeline with the name of its Service.
pub const SERVICE_NAME: &str = "observability.kaasops.io/service-name";

/// Maximum length of the name of a port of a Service.
const LONGEST_NAME: usize = 63;

/// Ports on which an aggregator serves a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelineService {
    /// Pipeline.
    pub pipeline: PipelineKey,
    /// Name of the Service, if an annotation sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Ports, by source. Their names are unique.
    pub ports: Vec<ServicePort>,
}

/// Port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name of the port, from the name of the source.
    pub name: String,
    /// Port on which the source listens.
    pub port: u16,
    /// Protocol.
    pub protocol: Protocol,
    /// If true, the event collector sends the Kubernetes Events of the pipeline's namespace, or of all namespaces, to this
    /// port.
    #[serde(default)]
    pub is_for_events: bool,
}

/// Protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Returns the name in the Kubernetes API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// Returns the Service of a pipeline with these sources, by the names that its author gave them. `event_source` is the one
/// that receives Kubernetes Events.
pub(crate) fn service(
    pipeline: &PipelineKey,
    annotations: &BTreeMap<String, String>,
    sources: &Map<String, Value>,
    event_source: Option<&str>,
) -> Option<PipelineService> {
    let mut ports = Vec::new();
    let mut names = BTreeSet::new();
    for (id, value) in sources {
        let source = Component {
            block: ComponentKind::Source.block(),
            family: ComponentKind::Source,
            id,
            value,
        };
        let addresses = listen_address::of(&source);
        let has_several = addresses.len() > 1;
        for address in addresses {
            let protocol = match address.protocol {
                "tcp" => Protocol::Tcp,
                "udp" => Protocol::Udp,
                _ => continue,
            };
            let Ok(socket) = address.endpoint.parse::<SocketAddr>() else {
                continue;
            };
            // The host chooses the port.
            if socket.port() == 0 {
                continue;
            }
            let part = address.option.split('.').next().unwrap_or_default();
            let name = if has_several {
                format!("{id}-{part}")
            } else {
                id.clone()
            };
            let mut name = port_name(&name, socket.port());
            if !names.insert(name.clone()) {
                name = format!("port-{}", socket.port());
                names.insert(name.clone());
            }
            ports.push(ServicePort {
                name,
                port: socket.port(),
                protocol,
                is_for_events: event_source == Some(id),
            });
        }
    }
    let service_name = annotations.get(SERVICE_NAME);
    (!ports.is_empty()).then(|| PipelineService {
        pipeline: pipeline.clone(),
        service_name: service_name.filter(|name| !name.is_empty()).cloned(),
        ports,
    })
}

/// Returns the name of a port: that of its source, if Kubernetes allows it.
fn port_name(source: &str, port: u16) -> String {
    let name = kebab_case(source);
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_name {
        name
    } else {
        format!("port-{port}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ports(sources: &Value, event_source: Option<&str>) -> Vec<(String, u16, &'static str)> {
        let pipeline = PipelineKey {
            namespace: None,
            name: "p".to_owned(),
        };
        let sources = sources.as_object().expect("sources");
        let service = service(&pipeline, &BTreeMap::new(), sources, event_source);
        let ports = service.into_iter().flat_map(|service| service.ports);
        ports
            .map(|port| {
                assert_eq!(port.is_for_events, event_source.is_some());
                (port.name, port.port, port.protocol.as_str())
            })
            .collect()
    }

    fn port(name: &str, port: u16, protocol: &'static str) -> (String, u16, &'static str) {
        (name.to_owned(), port, protocol)
    }

    #[test]
    fn a_port_has_the_name_of_its_source() {
        let sources = json!({
            "logs_in": {"type": "vector", "address": "0.0.0.0:6000"},
            "statsdIn": {"type": "statsd", "mode": "udp", "address": "[::]:8125"},
            "any": {"type": "http_server", "address": "0.0.0.0:0"},
            "file": {"type": "socket", "mode": "unix", "path": "/a"},
            "pulled": {"type": "kafka"},
            "fd": {"type": "socket", "mode": "tcp", "address": "systemd#1"},
        });
        let expected = [port("logs-in", 6000, "TCP"), port("statsd-in", 8125, "UDP")];
        assert_eq!(ports(&sources, None), expected);
    }

    #[test]
    fn a_source_with_two_addresses_has_two_ports() {
        let sources = json!({"otel": {
            "type": "opentelemetry",
            "grpc": {"address": "0.0.0.0:4317"}, "http": {"address": "0.0.0.0:4318"},
        }});
        let expected = [
            port("otel-grpc", 4317, "TCP"),
            port("otel-http", 4318, "TCP"),
        ];
        assert_eq!(ports(&sources, None), expected);
    }

    #[test]
    fn a_name_that_kubernetes_does_not_allow_is_replaced() {
        let long = "a".repeat(64);
        let sources = json!({
            "in": {"type": "vector", "address": "0.0.0.0:1"},
            "In": {"type": "vector", "address": "0.0.0.0:2"},
            "ä": {"type": "vector", "address": "0.0.0.0:3"},
            long: {"type": "vector", "address": "0.0.0.0:4"},
            "_": {"type": "vector", "address": "0.0.0.0:5"},
        });
        let mut found = ports(&sources, None);
        found.sort_by_key(|(_, port, _)| *port);
        let names: Vec<_> = found.iter().map(|(name, _, _)| name.as_str()).collect();
        // Of two equal names, the second in alphabetical order is replaced.
        assert_eq!(names, ["port-1", "in", "port-3", "port-4", "port-5"]);
    }

    #[test]
    fn the_port_for_events_is_marked_and_the_service_has_the_name_of_the_annotation() {
        let sources = json!({"events": {"type": "vector", "address": "0.0.0.0:42001"}});
        assert_eq!(
            ports(&sources, Some("events")),
            [port("events", 42_001, "TCP")]
        );
        let pipeline = PipelineKey {
            namespace: None,
            name: "p".to_owned(),
        };
        for (name, expected) in [("mine", Some("mine")), ("", None)] {
            let annotations = BTreeMap::from([(SERVICE_NAME.to_owned(), name.to_owned())]);
            let sources = sources.as_object().expect("sources");
            let service = service(&pipeline, &annotations, sources, None).expect("a service");
            assert_eq!(service.service_name.as_deref(), expected);
        }
        assert_eq!(
            service(&pipeline, &BTreeMap::new(), &Map::new(), None),
            None
        );
    }
}
