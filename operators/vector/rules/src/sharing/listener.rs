//! Components that listen on an address.

use serde_json::{Map, Value};
use shared_validation::FieldPath;

use super::place::ListenEndpoint;
use crate::addresses::{self, ListenAddress};
use crate::component::{Component, ComponentKind, components};

/// Component that listens, with its address.
pub(super) struct Listener<'a> {
    component: Component<'a>,
    pub(super) address: ListenAddress,
    pub(super) place: ListenEndpoint,
}

impl<'a> Listener<'a> {
    /// Returns the listeners of a configuration.
    pub(super) fn all(config: &'a Map<String, Value>) -> impl Iterator<Item = Self> {
        components(config).flat_map(|component| {
            let addresses = addresses::of(&component).into_iter();
            addresses.map(move |address| {
                let is_source = component.family == ComponentKind::Source;
                Self {
                    component,
                    place: ListenEndpoint::new(address.protocol, &address.place, is_source),
                    address,
                }
            })
        })
    }

    /// Returns the listeners of a stored pipeline.
    pub(super) fn of(pipeline: &'a Value) -> impl Iterator<Item = Self> {
        let spec = pipeline["spec"].as_object().into_iter();
        spec.flat_map(Self::all)
    }

    /// Returns the path of the field that contains the address.
    pub(super) fn path(&self) -> FieldPath {
        let path = self.address.path(&self.component);
        FieldPath::new(format!("spec.{}", path.as_str()))
    }

    pub(super) fn name(&self) -> String {
        let Component { family, id, .. } = self.component;
        format!("the {} `{id}`", family.noun())
    }

    /// Returns true if the component is a metrics exporter. Vector's own metrics are served separately only if no
    /// pipeline has one.
    pub(super) fn is_exporter(&self) -> bool {
        self.component.family == ComponentKind::Sink
            && self.component.kind() == Some("prometheus_exporter")
    }
}
