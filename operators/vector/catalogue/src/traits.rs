//! Measured facts about a version of Vector.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::schema::{SINKS, SOURCES, Schema, TRANSFORMS};

/// All event types.
const EVENTS: [&str; 3] = ["log", "metric", "trace"];

/// Facts that the schema does not contain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traits {
    /// Version of Vector, such as `0.57`.
    pub(crate) version: String,
    /// Version of VRL in this version of Vector.
    pub(crate) vrl: String,
    pub(crate) sources: BTreeMap<String, ComponentTraits>,
    pub(crate) transforms: BTreeMap<String, ComponentTraits>,
    pub(crate) sinks: BTreeMap<String, ComponentTraits>,
    /// Event types that a decoder outputs, if not only logs.
    pub(crate) decoders: Value,
    /// Event types that an encoder accepts, if not only logs.
    pub(crate) encoders: Value,
    /// Types in the schema that no configuration can use: those of Vector's own tests.
    pub(crate) internal: BTreeSet<String>,
    /// Places where Vector rejects unknown options, besides the top level of components: the name of a definition, or a
    /// definition, `#` and the path of a field in it.
    pub(crate) closed: BTreeMap<String, bool>,
    /// Aliases of options that are not at the top level of a component, by place.
    pub(crate) aliases: BTreeMap<String, BTreeMap<String, String>>,
    /// Values that Vector accepts besides those in the schema, by place.
    pub(crate) also: BTreeMap<String, Value>,
    /// Default variant for a value without its tag, by place and tag, where the schema requires the tag.
    pub(crate) defaults: BTreeMap<String, BTreeMap<String, String>>,
    /// Options that Vector requires and the schema does not, by place.
    pub(crate) required: BTreeMap<String, BTreeSet<String>>,
    /// Format of the keys of a mapping, by place.
    pub(crate) keys: BTreeMap<String, String>,
    /// Options that contain a file name, although the schema describes them as any string.
    pub(crate) files: BTreeSet<String>,
    /// Nodes that replace incorrect nodes of the schema, by place.
    pub(crate) replaced: BTreeMap<String, Value>,
    /// If true, Vector takes null for an optional value as if it was left out.
    #[serde(default)]
    pub(crate) accepts_null: bool,
    /// If true, the facts were measured with another version, so that some of them may not apply.
    #[serde(skip)]
    pub(crate) is_adapted: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentTraits {
    #[serde(default)]
    pub(crate) closed: bool,
    /// Event types that the component accepts.
    #[serde(default)]
    pub(crate) accepts: Vec<String>,
    /// Event types that the component outputs.
    #[serde(default)]
    pub(crate) gives: Vec<String>,
    /// Event types of each output, if it has several.
    #[serde(default)]
    pub(crate) outputs: BTreeMap<String, Vec<String>>,
    /// Aliases of options, which the schema does not contain.
    #[serde(default)]
    pub(crate) aliases: BTreeMap<String, String>,
    /// Aliases of the variants of its options, which the schema does not list.
    #[serde(default)]
    pub(crate) variants: BTreeMap<String, String>,
}

impl Traits {
    /// Adapts the facts of one version to the schema of another one. Returns the component types about which nothing
    /// is known.
    pub(crate) fn adapted(
        mut self,
        schema: &Schema,
        version: &str,
    ) -> anyhow::Result<(Self, Vec<String>)> {
        version.clone_into(&mut self.version);
        self.is_adapted = true;
        let mut unmeasured = Vec::new();
        for (noun, family, traits) in [
            ("source", SOURCES, &mut self.sources),
            ("transform", TRANSFORMS, &mut self.transforms),
            ("sink", SINKS, &mut self.sinks),
        ] {
            let types = schema.types(&family)?;
            let types: BTreeSet<_> = types.into_iter().map(|(name, _)| name).collect();
            traits.retain(|name, _| types.contains(name.as_str()));
            for name in types {
                if !traits.contains_key(name) && !self.internal.contains(name) {
                    unmeasured.push(format!("{noun} {name}"));
                    traits.insert(name.to_owned(), ComponentTraits::unmeasured());
                }
            }
        }
        Ok((self, unmeasured))
    }
}

impl ComponentTraits {
    /// Returns the facts about a type without measurements: it has no restriction.
    fn unmeasured() -> Self {
        let events = || EVENTS.map(str::to_owned).to_vec();
        Self {
            accepts: events(),
            gives: events(),
            ..Self::default()
        }
    }

    pub(crate) fn to_map(&self) -> Map<String, Value> {
        let flow = [
            ("accepts", json!(self.accepts)),
            ("aliases", json!(self.aliases)),
            ("gives", json!(self.gives)),
            ("outputs", json!(self.outputs)),
        ];
        let restricted = flow.into_iter().filter(|(_, types)| {
            types.as_array().is_some_and(|types| !types.is_empty())
                || types.as_object().is_some_and(|types| !types.is_empty())
        });
        restricted
            .map(|(name, types)| (name.to_owned(), types))
            .collect()
    }
}
