//! Sockets that components bind.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use crate::start::component::Component;

/// Sinks that listen, with their default addresses (`sinks/prometheus/exporter.rs`, `sinks/websocket_server`).
const LISTENING_SINKS: [(&str, &str); 2] = [
    ("prometheus_exporter", "0.0.0.0:9598"),
    ("websocket_server", ""),
];

/// Refuses an address or a path that two components bind.
pub(crate) fn check(config: &Value, components: &[Component<'_>]) -> Result<(), String> {
    let mut bound: Vec<(String, bool, SocketAddr)> = Vec::new();
    let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
    if config["api"]["enabled"] == true {
        let address = config["api"]["address"]
            .as_str()
            .unwrap_or("127.0.0.1:8686");
        bind(&mut bound, "api", false, address)?;
    }
    for component in components {
        let (id, type_) = (component.id, component.type_());
        for (is_udp, address) in addresses(component) {
            bind(&mut bound, id, is_udp, address)?;
        }
        let mode = component.options["mode"].as_str().unwrap_or_default();
        if component.block == "sources"
            && ["socket", "syslog", "statsd", "dnstap"].contains(&type_)
            && mode.starts_with("unix")
            && let Some(path) = component.options["path"].as_str()
            && let Some(other) = paths.insert(path, id)
        {
            return Err(format!("{id}: cannot bind {path}, which {other} has"));
        }
    }
    Ok(())
}

/// Returns the addresses that a component binds, and whether they are UDP.
fn addresses<'a>(component: &Component<'a>) -> Vec<(bool, &'a str)> {
    let options = component.options;
    if component.block == "sinks" {
        let listening = LISTENING_SINKS
            .iter()
            .find(|(type_, _)| *type_ == component.type_());
        let address = listening.map(|(_, default)| options["address"].as_str().unwrap_or(default));
        return address
            .map(|address| (false, address))
            .into_iter()
            .collect();
    }
    if component.block != "sources" {
        return Vec::new();
    }
    let is_udp = options["mode"] == "udp";
    let own = options["address"].as_str().map(|address| (is_udp, address));
    // Those of `opentelemetry`.
    let nested = ["grpc", "http"].into_iter();
    let nested = nested.filter_map(|field| Some((false, options[field]["address"].as_str()?)));
    own.into_iter().chain(nested).collect()
}

fn bind(
    bound: &mut Vec<(String, bool, SocketAddr)>,
    id: &str,
    is_udp: bool,
    address: &str,
) -> Result<(), String> {
    // What is no address is a name, or a descriptor of systemd.
    let Ok(address) = address.parse::<SocketAddr>() else {
        return Ok(());
    };
    let is_everywhere = |ip: IpAddr| ip.is_unspecified();
    let conflict = bound.iter().find(|(_, other_is_udp, other)| {
        is_udp == *other_is_udp
            && address.port() == other.port()
            && (address.ip() == other.ip()
                || is_everywhere(address.ip())
                || is_everywhere(other.ip()))
    });
    if let Some((other, ..)) = conflict {
        return Err(format!(
            "{id}: {address}: Address already in use (os error 98), by {other}"
        ));
    }
    bound.push((id.to_owned(), is_udp, address));
    Ok(())
}
