//! What a pipeline is to have for itself.

use std::net::IpAddr;
use std::rc::Rc;

use serde_json::{Map, Value};
use shared_validation::FieldPath;

use super::stored::{
    API_PORT, has_api, held, is_going, name, role, runs_together, selects, together_with,
};
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
            host: socket.map(|socket| socket.ip()),
        })
    }

    /// Whether only one of them can listen, whoever comes first: Vector compares what is written, a host also knows
    /// addresses that stand for all. An aggregator is sent to by its ports, of which it has each once.
    pub(super) fn is_in_the_way_of(&self, other: &Self, role: Role) -> bool {
        let are_sent_to = role == Role::Aggregator
            && [self, other].map(|it| it.component.family) == [Family::Source; 2];
        let overlaps = match (self.host, other.host) {
            (Some(one), Some(another)) => {
                one == another || is_all_of(one, another) || is_all_of(another, one)
            }
            _ => true,
        };
        self.port == other.port && (are_sent_to || overlaps)
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

/// Whether an address stands for all of which another is one. That of IPv6 stands for those of IPv4, too.
fn is_all_of(all: IpAddr, one: IpAddr) -> bool {
    all.is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}

/// One address that a pipeline is to listen on, among those who run it.
pub(super) struct Claim<'a> {
    pub(super) pipeline: &'a Value,
    pub(super) listener: Listener<'a>,
    runners: Rc<[&'a Value]>,
    role: Role,
    is_held: bool,
}

impl<'a> Claim<'a> {
    /// Those of a pipeline that one of these may run.
    pub(super) fn all(pipeline: &'a Value, runners: &'a [Value]) -> Vec<Self> {
        let (Some(role), Some(together)) = (role(pipeline), together_with(pipeline)) else {
            return Vec::new();
        };
        let own = runners.iter().filter(|runner| {
            !is_going(runner) && runs_together(runner) == together && selects(runner, pipeline)
        });
        let own: Rc<[_]> = own.collect();
        let held = held(pipeline);
        let claims = Listener::of(pipeline).map(|listener| Self {
            pipeline,
            is_held: held.contains(&listener.address.to_string()),
            listener,
            runners: Rc::clone(&own),
            role,
        });
        claims.collect()
    }

    /// Who comes first: whoever holds the address, then the elder.
    pub(super) fn precedence(&self) -> impl Ord + use<'a> {
        let metadata = &self.pipeline["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        (!self.is_held, text("creationTimestamp"), text("uid"))
    }

    /// Who has what another claims, and who runs both, if that is so.
    pub(super) fn keeps_from(&self, other: &Self) -> Option<(String, &'a Value)> {
        if std::ptr::eq(self.pipeline, other.pipeline)
            || !self.listener.is_in_the_way_of(&other.listener, self.role)
        {
            return None;
        }
        let mut runners = self.runners.iter();
        let is_same = |runner: &Value| other.runners.iter().any(|it| std::ptr::eq(*it, runner));
        let runner = runners.find(|runner| is_same(runner))?;
        let by = format!("{} of {}", self.listener.name(), name(self.pipeline));
        Some((by, runner))
    }

    /// Who runs it and has its port for Vector's own API.
    pub(super) fn api(&self) -> Option<&'a Value> {
        let is_api = self.listener.port == API_PORT;
        let mut runners = self.runners.iter().filter(|_| is_api);
        runners.find(|runner| has_api(runner)).copied()
    }
}
