//! New version of Vector: its schema as it is committed, and how its catalogue differs from the one before.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use serde_json::{Map, Value};

use crate::schema::Schema;
use crate::{catalogue, own_facts, printed, read};

/// Catalogue of a version, with what a person has to look at.
#[derive(Debug)]
pub struct NewVersion {
    /// Text of the catalogue.
    pub text: String,
    /// Measured version before it.
    pub before: Option<&'static str>,
    /// Facts that are not known of this version, or that no longer apply.
    pub unknown: Vec<String>,
    /// Differences between the catalogues.
    pub changes: Vec<CatalogueChange>,
}

/// Difference between two catalogues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueChange {
    /// Component type, or an option of it.
    pub place: String,
    /// `+`, `-` or `~`: new, gone or changed.
    pub change: char,
}

/// Generates the catalogue of a folder whose facts may be incomplete.
///
/// # Errors
///
/// If a file of this version or of the one before it cannot be read.
pub fn new_version(folder: &Path) -> anyhow::Result<NewVersion> {
    let schema = Schema::new(read(&folder.join("schema.json"))?)?;
    let (before, traits) = own_facts(folder)?;
    let version = traits.version.clone();
    let (traits, unmeasured) = traits.adapted(&schema, &version)?;
    let (catalogue, unmet) = catalogue::from_schema(&schema, &traits)?;
    let unmeasured = unmeasured
        .into_iter()
        .map(|name| format!("event types and closed options of the {name}"));
    let unmet = unmet
        .into_iter()
        .map(|place| format!("{place}, to which a fact refers, does not exist"));
    let changes = match before {
        None => Vec::new(),
        Some(before) => {
            let folder = folder.with_file_name(format!("vector-{before}"));
            let old = Schema::new(read(&folder.join("schema.json"))?)?;
            let (old, _) = catalogue::from_schema(&old, &own_facts(&folder)?.1)?;
            changes(&old, &catalogue)
        }
    };
    Ok(NewVersion {
        text: printed(&catalogue),
        before,
        unknown: unmeasured.chain(unmet).collect(),
        changes,
    })
}

/// Returns a schema without the descriptions, which no catalogue contains, compressed.
///
/// # Errors
///
/// If it cannot be compressed.
pub fn packed_schema(mut schema: Value) -> anyhow::Result<Vec<u8>> {
    remove_prose(&mut schema);
    let mut packed: GzEncoder<Vec<u8>> = GzBuilder::new().write(Vec::new(), Compression::best());
    packed.write_all(schema.to_string().as_bytes())?;
    Ok(packed.finish()?)
}

fn remove_prose(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // An option may have such a name: its node is an object.
            fields.retain(|name, value| match name.as_str() {
                "$schema" | "description" | "title" => !value.is_string(),
                "_metadata" => false,
                _ => true,
            });
            fields.values_mut().for_each(remove_prose);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_prose),
        _ => {}
    }
}

/// Compares the options of each component and the global options.
fn changes(old: &Value, new: &Value) -> Vec<CatalogueChange> {
    let (old, new) = (places(old), places(new));
    let mut changes = Vec::new();
    for (place, node) in &new {
        match old.get(place) {
            None => changes.push((place, '+')),
            Some(before) if before != node => changes.push((place, '~')),
            Some(_) => {}
        }
    }
    changes.extend(
        old.keys()
            .filter(|place| !new.contains_key(*place))
            .map(|place| (place, '-')),
    );
    changes.sort_unstable();
    let changes = changes.into_iter();
    changes
        .map(|(place, change)| CatalogueChange {
            place: place.clone(),
            change,
        })
        .collect()
}

/// Returns the component types, their options, the global options and the definitions, each with what it accepts.
fn places(catalogue: &Value) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    let entries = |name: &str| catalogue[name].as_object().into_iter().flatten();
    for block in ["sources", "transforms", "sinks"] {
        for (kind, component) in entries(block) {
            let place = format!("{block} {kind}");
            for (option, node) in options(&component["options"]) {
                places.insert(format!("{place} {option}"), node);
            }
            places.insert(place, String::new());
        }
    }
    for block in ["globals", "definitions"] {
        places
            .extend(entries(block).map(|(name, node)| (format!("{block} {name}"), accepted(node))));
    }
    places
}

/// Returns what a node accepts, besides null: a version accepts it everywhere or nowhere.
fn accepted(node: &Value) -> String {
    let text = node.to_string();
    text.replace(",\"nullable\":true", "")
        .replace("\"nullable\":true,", "")
}

/// Returns the options of an object in all its forms.
fn options(node: &Value) -> BTreeMap<String, String> {
    let forms = node["anyOf"].as_array().into_iter().flatten();
    let variants = node["variants"]
        .as_object()
        .into_iter()
        .flat_map(Map::values);
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for form in forms.chain(variants).chain([node]) {
        for (name, option) in form["properties"].as_object().into_iter().flatten() {
            let text = found.entry(name.clone()).or_default();
            text.push_str(&accepted(option));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_changes_of_a_version_are_listed() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = new_version(&here.join("vector-0.58")).expect("a catalogue");
        assert_eq!((found.before, &found.unknown[..]), (Some("0.57"), &[][..]));
        for (change, place) in [
            ('-', "sinks logdna"),
            ('+', "sources kafka decompression"),
            ('-', "sources http_server encoding"),
            ('~', "sinks splunk_hec_logs endpoint"),
        ] {
            let change = CatalogueChange {
                place: place.to_owned(),
                change,
            };
            assert!(found.changes.contains(&change), "{change:?}");
        }
    }

    #[test]
    fn an_option_may_be_called_title() {
        let mut schema = json!({"title": "prose", "properties": {"title": {"type": "string", "description": "prose"}}});
        remove_prose(&mut schema);
        assert_eq!(schema, json!({"properties": {"title": {"type": "string"}}}));
    }
}
