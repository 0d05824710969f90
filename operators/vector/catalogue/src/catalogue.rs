//! Generation of the catalogue.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::normalize::{Corrections, Normalizer};
use crate::schema::{Family, SINKS, SOURCES, Schema, TRANSFORMS};
use crate::schema_union;
use crate::schema_union::{Object, SchemaAlternative};

/// Facts that the schema does not contain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traits {
    /// Version of Vector, such as `0.57`.
    version: String,
    /// Version of VRL in this version of Vector.
    vrl: String,
    sources: BTreeMap<String, ComponentTraits>,
    transforms: BTreeMap<String, ComponentTraits>,
    sinks: BTreeMap<String, ComponentTraits>,
    /// Event types that a decoder outputs, if not only logs.
    decoders: Value,
    /// Event types that an encoder accepts, if not only logs.
    encoders: Value,
    /// Types in the schema that no configuration can use: those of Vector's own tests.
    internal: BTreeSet<String>,
    /// Places where Vector rejects unknown options, besides the top level of components: the name of a definition, or a
    /// definition, `#` and the path of a field in it.
    closed: BTreeSet<String>,
    /// Aliases of options that are not at the top level of a component, by place.
    aliases: BTreeMap<String, BTreeMap<String, String>>,
    /// Values that Vector accepts besides those in the schema, by place.
    also: BTreeMap<String, Value>,
    /// Default variant for a value without its tag, by place and tag, where the schema requires the tag.
    defaults: BTreeMap<String, BTreeMap<String, String>>,
    /// Options that Vector requires and the schema does not, by place.
    required: BTreeMap<String, BTreeSet<String>>,
    /// Format of the keys of a mapping, by place.
    keys: BTreeMap<String, String>,
    /// Options that contain a file name, although the schema describes them as any string.
    files: BTreeSet<String>,
    /// Nodes that replace incorrect nodes of the schema, by place.
    replaced: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentTraits {
    #[serde(default)]
    closed: bool,
    /// Event types that the component accepts.
    #[serde(default)]
    accepts: Vec<String>,
    /// Event types that the component outputs.
    #[serde(default)]
    gives: Vec<String>,
    /// Event types of each output, if it has several.
    #[serde(default)]
    outputs: BTreeMap<String, Vec<String>>,
    /// Aliases of options, which the schema does not contain.
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    /// Aliases of the variants of its options, which the schema does not list.
    #[serde(default)]
    variants: BTreeMap<String, String>,
}

impl ComponentTraits {
    fn to_map(&self) -> Map<String, Value> {
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

/// Generates the catalogue.
pub(crate) fn of(schema: &Schema, traits: &Traits) -> anyhow::Result<Value> {
    let mut normal = Normalizer::new(
        schema,
        Corrections {
            closed: &traits.closed,
            aliases: &traits.aliases,
            also: &traits.also,
            defaults: &traits.defaults,
            required: &traits.required,
            keys: &traits.keys,
            files: &traits.files,
            replaced: &traits.replaced,
        },
    );
    let mut out = Map::new();
    out.insert("version".to_owned(), json!(traits.version));
    out.insert("vrl".to_owned(), json!(traits.vrl));
    for (name, family, of_kind) in [
        ("sources", SOURCES, &traits.sources),
        ("transforms", TRANSFORMS, &traits.transforms),
        ("sinks", SINKS, &traits.sinks),
    ] {
        let components = components(schema, &family, of_kind, &traits.internal, &mut normal);
        let components = components.with_context(|| name.to_owned())?;
        out.insert(name.to_owned(), components);
    }
    out.insert("decoders".to_owned(), traits.decoders.clone());
    out.insert("encoders".to_owned(), traits.encoders.clone());
    let mut globals = Map::new();
    for (name, node) in &schema.globals {
        if !["sources", "transforms", "sinks"].contains(&name.as_str()) {
            globals.insert(name.clone(), normal.node(node, &format!("#{name}"))?);
        }
    }
    out.insert("globals".to_owned(), globals.into());
    let unmet = normal.unused_corrections();
    ensure!(
        unmet.is_empty(),
        "the traits refer to places that do not exist in the schema: {unmet:?}"
    );
    out.insert("definitions".to_owned(), definitions(normal.definitions));
    Ok(out.into())
}

/// Returns the components of one kind, each with the options that all components of this kind share.
fn components(
    schema: &Schema,
    family: &Family,
    traits: &BTreeMap<String, ComponentTraits>,
    internal: &BTreeSet<String>,
    normal: &mut Normalizer<'_>,
) -> anyhow::Result<Value> {
    let shared = normal.alternatives(schema.shared(family)?, "shared", true)?;
    let mut typed = Object::default();
    typed.properties.insert("type".to_owned(), json!({}));
    let shared = schema_union::both(&shared, &[SchemaAlternative::Object(typed)])?;
    let mut components = Map::new();
    let offered = schema.types(family)?.into_iter();
    for (name, node) in offered.filter(|(name, _)| !internal.contains(*name)) {
        let traits = traits.get(name);
        let traits = traits.with_context(|| format!("the traits have no entry for `{name}`"))?;
        let own = normal.alternatives(node, name, true)?;
        let all = schema_union::both(&own, &shared).with_context(|| name.to_owned())?;
        let mut options = schema_union::any(&all, &|_| traits.closed)?;
        for (alias, variant) in &traits.variants {
            let found = options["variants"].get(variant).cloned();
            let found = found.with_context(|| format!("`{name}` has no variant `{variant}`"))?;
            options["variants"][alias] = found;
        }
        let mut component = traits.to_map();
        component.insert("options".to_owned(), options);
        components.insert(name.to_owned(), component.into());
    }
    let unknown: Vec<_> = traits
        .keys()
        .filter(|name| !components.contains_key(*name))
        .collect();
    ensure!(
        unknown.is_empty(),
        "the traits describe types that do not exist in the schema: {unknown:?}"
    );
    Ok(components.into())
}

/// Returns the definitions, without those that only refer to others.
fn definitions(all: BTreeMap<String, Value>) -> Value {
    let own = all
        .into_iter()
        .filter(|(_, node)| !node["$ref"].is_string());
    own.collect::<Map<_, _>>().into()
}
