//! Where one can listen, and what is in whose way there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::role::RunnerKind;

/// Where one listens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListenEndpoint {
    /// What any two have in common of which one can be in the way of the other: protocol and port.
    pub(super) port: String,
    pub(super) spot: PortSlot,
}

/// Where one listens on a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PortSlot {
    host: Host,
    is_source: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Host {
    At(IpAddr),
    /// With port 0, for which the host chooses another: nobody is in the way there, but Vector refuses what is written
    /// twice.
    Written(IpAddr),
    /// There is no choice.
    Any,
}

/// A part of a port that spots have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Host(IpAddr),
    Written(IpAddr),
    /// Whatever is on hosts of IPv4.
    Ipv4,
    /// Whatever there is.
    All,
    /// What needs all there is.
    Whole,
    /// What a Service leads to.
    Served,
}

const ALL_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ALL: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl ListenEndpoint {
    /// Of an address as a configuration has it.
    pub(super) fn new(protocol: &str, place: &str, is_source: bool) -> Self {
        let socket: Option<SocketAddr> = place.parse().ok();
        let (port, host) = match socket {
            Some(socket) if socket.port() == 0 => ("0".to_owned(), Host::Written(socket.ip())),
            // An address of IPv4 in the clothes of IPv6 is that address.
            Some(socket) => (
                socket.port().to_string(),
                Host::At(socket.ip().to_canonical()),
            ),
            None => (place.to_owned(), Host::Any),
        };
        Self {
            port: format!("{protocol} {port}"),
            spot: PortSlot { host, is_source },
        }
    }
}

impl PortSlot {
    /// Whether only one of two on a port can listen, whoever comes first.
    pub(super) fn conflicts_with(self, other: Self, role: RunnerKind) -> bool {
        let needs = other.needs(role);
        self.takes(role).any(|part| needs.contains(&part))
    }

    /// What it takes. One that needs any of this cannot listen, too.
    pub(super) fn takes(self, role: RunnerKind) -> impl Iterator<Item = Part> {
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

    /// What nobody else may have taken: Vector compares what is written, a host also knows addresses that stand for
    /// all. That of IPv6 stands for those of IPv4, too.
    pub(super) fn needs(self, role: RunnerKind) -> Vec<Part> {
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

    /// An aggregator is sent to by its ports, of which it has each once.
    fn served(self, role: RunnerKind) -> Option<Part> {
        let is_served = role == RunnerKind::Aggregator
            && self.is_source
            && !matches!(self.host, Host::Written(_));
        is_served.then_some(Part::Served)
    }
}
