//! Text → components: what a configuration consists of, read with forgiveness, since every part is judged
//! later by what it must be.

use serde_json::{Map, Value};

/// What a component is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentKind {
    /// Brings events in.
    Source,
    /// Changes them.
    Transform,
    /// Sends them out.
    Sink,
}

impl ComponentKind {
    /// All, in the order in which events go through them.
    pub const ALL: [Self; 3] = [Self::Source, Self::Transform, Self::Sink];

    /// The block of a configuration that holds them.
    #[must_use]
    pub fn block(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Transform => "transforms",
            Self::Sink => "sinks",
        }
    }

    /// One of them, in a sentence.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Transform => "transform",
            Self::Sink => "sink",
        }
    }
}

/// One component.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    /// The block that holds it.
    pub block: &'a str,
    /// What it is for.
    pub family: ComponentKind,
    /// Its name.
    pub id: &'a str,
    /// Everything that stands under the name.
    pub value: &'a Value,
}

impl<'a> Component<'a> {
    /// Its type, where that is told.
    #[must_use]
    pub fn kind(&self) -> Option<&'a str> {
        self.option("type")?.as_str()
    }

    /// One of its options.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'a Value> {
        self.value.as_object()?.get(name)
    }

    /// Where its events come from, as written.
    pub fn inputs(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let inputs = self.option("inputs").and_then(Value::as_array);
        inputs.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Where it stands in the configuration.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}[{}]", self.block, self.id)
    }
}

/// Whether an input is a pattern, which any number of outputs may match.
pub(crate) fn is_pattern(input: &str) -> bool {
    input.contains(['*', '?', '['])
}

/// Every component of a configuration, by family and name.
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
