//! Configuration → components. Reading is lenient, because each part is validated later.

use serde_json::{Map, Value};

/// Kind of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentKind {
    /// Receives events.
    Source,
    /// Changes events.
    Transform,
    /// Sends events.
    Sink,
}

impl ComponentKind {
    /// All kinds, in the order in which events flow through them.
    pub const ALL: [Self; 3] = [Self::Source, Self::Transform, Self::Sink];

    /// Returns the block of a configuration that contains the components.
    #[must_use]
    pub const fn block(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Transform => "transforms",
            Self::Sink => "sinks",
        }
    }

    /// Returns the noun for messages.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Transform => "transform",
            Self::Sink => "sink",
        }
    }
}

/// Source type of the operator, which Vector does not have. The operator replaces it with a source that receives events
/// from the event collector.
pub const KUBERNETES_EVENTS: &str = "kubernetes_events";

/// Component of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    /// Block that contains the component.
    pub block: &'a str,
    /// Kind of the component.
    pub family: ComponentKind,
    /// Name of the component.
    pub id: &'a str,
    /// Value under the name: the type and the options.
    pub value: &'a Value,
}

impl<'a> Component<'a> {
    /// Returns the type, if it is set.
    #[must_use]
    pub fn kind(&self) -> Option<&'a str> {
        self.option("type")?.as_str()
    }

    /// Returns an option, if it is set.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'a Value> {
        self.value.as_object()?.get(name)
    }

    /// Returns the inputs as written in the configuration.
    pub fn inputs(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let inputs = self.option("inputs").and_then(Value::as_array);
        inputs.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns the path in the configuration.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}[{}]", self.block, self.id)
    }
}

/// Returns true if an input is a pattern, which may match any number of outputs.
#[must_use]
pub fn is_pattern(input: &str) -> bool {
    input.contains(['*', '?', '['])
}

/// Returns every component of a configuration, sorted by kind and name.
pub fn components(config: &Map<String, Value>) -> impl Iterator<Item = Component<'_>> {
    ComponentKind::ALL.into_iter().flat_map(move |family| {
        let block = family.block();
        let all = config.get(block).and_then(Value::as_object);
        all.into_iter().flatten().map(move |(id, value)| Component {
            block,
            family,
            id,
            value,
        })
    })
}
