//! Generation of the catalogue.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use crate::normalize::{Corrections, Normalizer};
use crate::schema::{Family, SINKS, SOURCES, Schema, TRANSFORMS};
use crate::schema_union;
use crate::schema_union::{Object, SchemaAlternative};
use crate::traits::{ComponentTraits, Traits};

/// Generates the catalogue. Returns the places of adapted facts that do not exist in the schema, too.
pub(crate) fn from_schema(
    schema: &Schema,
    traits: &Traits,
) -> anyhow::Result<(Value, Vec<String>)> {
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
            accepts_null: traits.accepts_null,
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
        let components = components(schema, &family, of_kind, traits, &mut normal);
        let components = components.with_context(|| name.to_owned())?;
        out.insert(name.to_owned(), components);
    }
    out.insert("decoders".to_owned(), traits.decoders.clone());
    out.insert("encoders".to_owned(), traits.encoders.clone());
    let mut globals = Map::new();
    for (name, node) in &schema.globals {
        if !["sources", "transforms", "sinks"].contains(&name.as_str()) {
            globals.insert(name.clone(), normal.child(node, &format!("#{name}"))?);
        }
    }
    out.insert("globals".to_owned(), globals.into());
    let unmet = normal.unused_corrections();
    ensure!(
        traits.is_adapted || unmet.is_empty(),
        "the traits refer to places that do not exist in the schema: {unmet:?}"
    );
    let unmet = unmet.into_iter().cloned().collect();
    out.insert("definitions".to_owned(), definitions(normal.definitions));
    Ok((out.into(), unmet))
}

/// Returns the components of one kind, each with the options that all components of this kind share.
fn components(
    schema: &Schema,
    family: &Family,
    traits: &BTreeMap<String, ComponentTraits>,
    whole: &Traits,
    normal: &mut Normalizer<'_>,
) -> anyhow::Result<Value> {
    let shared = normal.alternatives(schema.shared(family)?, "shared", true)?;
    let mut typed = Object::default();
    typed.properties.insert("type".to_owned(), json!({}));
    let shared = schema_union::both(&shared, &[SchemaAlternative::Object(typed)])?;
    let mut components = Map::new();
    let offered = schema.types(family)?.into_iter();
    for (name, node) in offered.filter(|(name, _)| !whole.internal.contains(*name)) {
        let traits = traits.get(name);
        let traits = traits.with_context(|| format!("the traits have no entry for `{name}`"))?;
        let own = normal.alternatives(node, name, true)?;
        let all = schema_union::both(&own, &shared).with_context(|| name.to_owned())?;
        let mut options = schema_union::any(&all, &|_| traits.closed)?;
        for (alias, variant) in &traits.variants {
            let found = options["variants"].get(variant).cloned();
            if found.is_none() && whole.is_adapted {
                continue;
            }
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
