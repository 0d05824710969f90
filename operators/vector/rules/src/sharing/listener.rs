//! Where components listen.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared_validation::FieldPath;

use crate::addresses::{self, Address};
use crate::component::{Component, Family, components};
use crate::role::Role;

/// A component that listens, and where.
pub(super) struct Listener<'a> {
    component: Component<'a>,
    pub(super) address: Address,
    /// What any two have in common of which one can be in the way of the other: protocol and port.
    pub(super) port: String,
    /// None where there is no choice.
    host: Option<IpAddr>,
}

impl<'a> Listener<'a> {
    /// Those of a configuration, but for ports that are chosen when they are listened on.
    pub(super) fn all(config: &'a Map<String, Value>) -> impl Iterator<Item = Self> {
        components(config).flat_map(|component| {
            let addresses = addresses::of(&component).into_iter();
            addresses.filter_map(move |address| Self::new(component, address))
        })
    }

    /// Those of a pipeline as stored.
    pub(super) fn of(pipeline: &'a Value) -> impl Iterator<Item = Self> {
        let spec = pipeline["spec"].as_object().into_iter();
        spec.flat_map(Self::all)
    }

    fn new(component: Component<'a>, address: Address) -> Option<Self> {
        let socket = address.socket();
        let port = match socket {
            Some(socket) if socket.port() == 0 => return None,
            Some(socket) => format!("{} {}", address.protocol, socket.port()),
            None => address.to_string(),
        };
        Some(Self {
            component,
            address,
            port,
            // An address of IPv4 in the clothes of IPv6 is that address.
            host: socket.map(|socket| socket.ip().to_canonical()),
        })
    }

    /// Where it is, as far as it matters who else is there.
    pub(super) fn spot(&self) -> Spot {
        Spot {
            host: self.host,
            is_source: self.component.family == Family::Source,
        }
    }

    /// The field that names the address.
    pub(super) fn path(&self) -> FieldPath {
        let path = self.address.path(&self.component);
        FieldPath::new(format!("spec.{}", path.as_str()))
    }

    pub(super) fn name(&self) -> String {
        let Component { family, id, .. } = self.component;
        format!("the {} `{id}`", family.noun())
    }
}

/// Where one listens on a port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Spot {
    /// None where there is no choice.
    host: Option<IpAddr>,
    is_source: bool,
}

impl Spot {
    /// Whether only one of two on a port can listen, whoever comes first: Vector compares what is written, a host
    /// also knows addresses that stand for all. An aggregator is sent to by its ports, of which it has each once.
    pub(super) fn is_in_the_way_of(self, other: Self, role: Role) -> bool {
        let are_sent_to = role == Role::Aggregator && self.is_source && other.is_source;
        let overlaps = match (self.host, other.host) {
            (Some(one), Some(another)) => {
                one == another || is_all_of(one, another) || is_all_of(another, one)
            }
            _ => true,
        };
        are_sent_to || overlaps
    }
}

/// Whether an address stands for all of which another is one. That of IPv6 stands for those of IPv4, too.
fn is_all_of(all: IpAddr, one: IpAddr) -> bool {
    all.is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}
