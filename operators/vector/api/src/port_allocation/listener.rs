//! Components that listen on an address.

use lockstep_shared_validation::FieldPath;
use lockstep_vector_config::listen_address::ListenAddress;
use lockstep_vector_config::{Component, ComponentKind, components, listen_address};
use serde_json::{Map, Value};

use crate::port_allocation::endpoint::ListenEndpoint;

/// Component that listens, with its address.
pub(crate) struct Listener<'a> {
    component: Component<'a>,
    pub(crate) address: ListenAddress,
    pub(crate) endpoint: ListenEndpoint,
}

impl<'a> Listener<'a> {
    /// Returns the listeners of a configuration.
    pub(crate) fn all(config: &'a Map<String, Value>) -> impl Iterator<Item = Self> {
        components(config).flat_map(|component| {
            let addresses = listen_address::of(&component).into_iter();
            addresses.map(move |address| {
                let is_source = component.family == ComponentKind::Source;
                Self {
                    component,
                    endpoint: ListenEndpoint::new(address.protocol, &address.endpoint, is_source),
                    address,
                }
            })
        })
    }

    /// Returns the listeners of a stored pipeline.
    pub(crate) fn of(pipeline: &'a Value) -> impl Iterator<Item = Self> {
        let spec = pipeline["spec"].as_object().into_iter();
        spec.flat_map(Self::all)
    }

    /// Returns the path of the field that contains the address.
    pub(crate) fn path(&self) -> FieldPath {
        let path = self.address.path(&self.component);
        FieldPath::new(format!("spec.{}", path.as_str()))
    }

    pub(crate) fn name(&self) -> String {
        let Component { family, id, .. } = self.component;
        format!("the {} `{id}`", family.noun())
    }

    /// Returns true if the component is a metrics exporter. Vector's own metrics are served separately only if no
    /// pipeline has one.
    pub(crate) fn is_exporter(&self) -> bool {
        self.component.family == ComponentKind::Sink
            && self.component.kind() == Some("prometheus_exporter")
    }
}
