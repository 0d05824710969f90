//! What a pipeline is to have for itself.

use serde_json::{Map, Value};
use shared_validation::FieldPath;

use super::stored::{held, is_going, name, role, runs_together, selects, together_with};
use crate::addresses::{self, Address};
use crate::component::{Component, Family, components};
use crate::role::Role;

/// A component that listens, and where.
pub(super) struct Listener<'a> {
    component: Component<'a>,
    pub(super) address: Address,
}

impl<'a> Listener<'a> {
    /// Those of a configuration.
    pub(super) fn all(config: &'a Map<String, Value>) -> impl Iterator<Item = Self> {
        components(config).flat_map(|component| {
            let addresses = addresses::of(&component).into_iter();
            addresses.map(move |address| Self { component, address })
        })
    }

    /// Those of a pipeline as stored.
    pub(super) fn of(pipeline: &'a Value) -> impl Iterator<Item = Self> {
        let spec = pipeline["spec"].as_object().into_iter();
        spec.flat_map(Self::all)
    }

    /// Whether only one of them can listen, whoever comes first. An aggregator is sent to by its ports, of which it
    /// has each once.
    pub(super) fn is_in_the_way_of(&self, other: &Self, role: Role) -> bool {
        let are_sent_to = role == Role::Aggregator
            && [self, other].map(|it| it.component.family) == [Family::Source; 2];
        let port = self.address.port();
        self.address.overlaps(&other.address)
            || are_sent_to && port.is_some() && port == other.address.port()
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

/// One address that a pipeline is to listen on, among those who run it.
pub(super) struct Claim<'a> {
    pub(super) pipeline: &'a Value,
    pub(super) listener: Listener<'a>,
    pub(super) runners: Vec<&'a Value>,
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
        let own: Vec<_> = own.collect();
        let held = held(pipeline);
        let claims = Listener::of(pipeline).map(|listener| Self {
            pipeline,
            is_held: held.contains(&listener.address.to_string()),
            listener,
            runners: own.clone(),
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
        let runner = runners.find(|runner| other.is_run_by(runner))?;
        let by = format!("{} of {}", self.listener.name(), name(self.pipeline));
        Some((by, runner))
    }

    pub(super) fn is_run_by(&self, runner: &Value) -> bool {
        self.runners.iter().any(|it| std::ptr::eq(*it, runner))
    }
}
