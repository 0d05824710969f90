//! The catalogue: what judges.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::alternatives::{self, Object, SchemaAlternative};
use crate::normal::{Corrections, Normalizer};
use crate::schema::{Family, SINKS, SOURCES, Schema, TRANSFORMS};

/// What the schema does not say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traits {
    /// The version, such as `0.57`.
    version: String,
    /// The version of the language that comes with it.
    vrl: String,
    sources: BTreeMap<String, ComponentTraits>,
    transforms: BTreeMap<String, ComponentTraits>,
    sinks: BTreeMap<String, ComponentTraits>,
    /// The event types that a codec gives, where it is not logs alone.
    decoders: Value,
    /// The event types that a codec takes, where it is not logs alone.
    encoders: Value,
    /// Types in the schema that no configuration can have: those of Vector's own tests.
    internal: BTreeSet<String>,
    /// Where options are refused that Vector does not know, besides the tops of components: the name of a
    /// definition, or a definition, `#` and the path of a field in it.
    closed: BTreeSet<String>,
    /// Other names of options that are not at the top of a component, by place.
    aliases: BTreeMap<String, BTreeMap<String, String>>,
    /// Values that Vector takes besides those in the schema, by place.
    also: BTreeMap<String, Value>,
    /// The variant that a value without its tag is read as, by place and tag, where the schema requires the tag.
    defaults: BTreeMap<String, BTreeMap<String, String>>,
    /// Options that Vector requires and the schema does not, by place.
    required: BTreeMap<String, BTreeSet<String>>,
    /// What the names of a mapping are read as, by place.
    keys: BTreeMap<String, String>,
    /// Options that name a file, though the schema has them as any text.
    files: BTreeSet<String>,
    /// What stands in place of what the schema says, where that is not so.
    replaced: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentTraits {
    #[serde(default)]
    closed: bool,
    /// The event types that it takes.
    #[serde(default)]
    accepts: Vec<String>,
    /// Those that it gives.
    #[serde(default)]
    gives: Vec<String>,
    /// Those of each output, where it has several.
    #[serde(default)]
    outputs: BTreeMap<String, Vec<String>>,
    /// Other names of options, which the schema does not tell.
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    /// Other names of the variants of its options, which the schema does not list.
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
        let told = flow.into_iter().filter(|(_, types)| {
            types.as_array().is_some_and(|types| !types.is_empty())
                || types.as_object().is_some_and(|types| !types.is_empty())
        });
        told.map(|(name, types)| (name.to_owned(), types)).collect()
    }
}

/// Makes the catalogue.
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
        "the traits name what is nowhere: {unmet:?}"
    );
    out.insert("definitions".to_owned(), definitions(normal.definitions));
    Ok(out.into())
}

/// Those of one kind, each with the options that all of the kind share.
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
    let shared = alternatives::both(&shared, &[SchemaAlternative::Object(typed)])?;
    let mut components = Map::new();
    let offered = schema.types(family)?.into_iter();
    for (name, node) in offered.filter(|(name, _)| !internal.contains(*name)) {
        let traits = traits.get(name);
        let traits = traits.with_context(|| format!("no traits of `{name}`"))?;
        let own = normal.alternatives(node, name, true)?;
        let all = alternatives::both(&own, &shared).with_context(|| name.to_owned())?;
        let mut options = alternatives::any(&all, &|_| traits.closed)?;
        for (alias, variant) in &traits.variants {
            let found = options["variants"].get(variant).cloned();
            let found = found.with_context(|| format!("no variant `{variant}` of `{name}`"))?;
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
        "traits of what is not there: {unknown:?}"
    );
    Ok(components.into())
}

/// Without those that only lead to others.
fn definitions(all: BTreeMap<String, Value>) -> Value {
    let own = all
        .into_iter()
        .filter(|(_, node)| !node["$ref"].is_string());
    own.collect::<Map<_, _>>().into()
}
