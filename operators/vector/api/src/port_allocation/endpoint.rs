//! Listen endpoints and their conflicts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::types::workload_role::WorkloadRole;

/// Endpoint that a component listens on.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenEndpoint {
    /// Protocol and port. Two endpoints can conflict only if these are equal.
    pub(crate) port: String,
    pub(crate) slot: PortSlot,
}

/// Part of an endpoint besides protocol and port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PortSlot {
    host: Host,
    is_source: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Host {
    At(IpAddr),
    /// Address with port 0, for which the host chooses a free port. No conflict occurs on the host, but Vector rejects
    /// the same address twice.
    Written(IpAddr),
    /// The endpoint has no IP address.
    Any,
}

/// Part of a port that endpoints can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Host(IpAddr),
    Written(IpAddr),
    /// Any IPv4 address.
    Ipv4,
    /// Any endpoint on the port.
    All,
    /// Endpoint that needs the whole port.
    Whole,
    /// Endpoint behind a Service.
    Served,
}

const ALL_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ALL: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl ListenEndpoint {
    /// Returns the endpoint of an address in a configuration.
    #[must_use]
    pub fn new(protocol: &str, address: &str, is_source: bool) -> Self {
        let socket: Option<SocketAddr> = address.parse().ok();
        let (port, host) = match socket {
            Some(socket) if socket.port() == 0 => ("0".to_owned(), Host::Written(socket.ip())),
            // An IPv4-mapped IPv6 address is the same as the IPv4 address.
            Some(socket) => (
                socket.port().to_string(),
                Host::At(socket.ip().to_canonical()),
            ),
            None => (address.to_owned(), Host::Any),
        };
        Self {
            port: format!("{protocol} {port}"),
            slot: PortSlot { host, is_source },
        }
    }

    /// Returns true if a source listens on the endpoint, and not a sink.
    #[must_use]
    pub fn is_source(&self) -> bool {
        self.slot.is_source
    }

    /// Returns true if a process in this role cannot listen on both endpoints.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self, role: WorkloadRole) -> bool {
        self.port == other.port && self.slot.conflicts_with(other.slot, role)
    }
}

impl PortSlot {
    /// Returns true if only one of two endpoints on a port can listen, whichever is first.
    pub(crate) fn conflicts_with(self, other: Self, role: WorkloadRole) -> bool {
        let needs = other.needs(role);
        self.takes(role).any(|part| needs.contains(&part))
    }

    /// Returns the parts that this endpoint occupies. An endpoint that needs any of them conflicts with it.
    pub(crate) fn takes(self, role: WorkloadRole) -> impl Iterator<Item = Part> {
        let parts = match self.host {
            Host::At(host) => [
                Some(Part::Host(host)),
                host.is_ipv4().then_some(Part::Ipv4),
                Some(Part::All),
            ],
            Host::Written(host) => [Some(Part::Written(host)), None, None],
            Host::Any => [Some(Part::Whole), Some(Part::All), None],
        };
        parts.into_iter().flatten().chain(self.served(role))
    }

    /// Returns the parts that no other endpoint may occupy. Vector compares the addresses as written; on a host, the
    /// wildcard addresses also conflict with all others. The IPv6 wildcard address includes all IPv4 addresses.
    pub(crate) fn needs(self, role: WorkloadRole) -> Vec<Part> {
        let parts = match self.host {
            Host::At(ALL) | Host::Any => vec![Part::All],
            Host::At(ALL_IPV4) => vec![Part::Ipv4, Part::Host(ALL), Part::Whole],
            Host::At(host @ IpAddr::V4(_)) => {
                let all = [ALL_IPV4, ALL].map(Part::Host);
                [Part::Host(host), Part::Whole]
                    .into_iter()
                    .chain(all)
                    .collect()
            }
            Host::At(host) => vec![Part::Host(host), Part::Host(ALL), Part::Whole],
            Host::Written(host) => vec![Part::Written(host)],
        };
        parts.into_iter().chain(self.served(role)).collect()
    }

    /// Returns the part that a Service needs: clients reach an aggregator by port, and each port exists only once.
    fn served(self, role: WorkloadRole) -> Option<Part> {
        let is_served = role == WorkloadRole::Aggregator
            && self.is_source
            && !matches!(self.host, Host::Written(_));
        is_served.then_some(Part::Served)
    }
}
