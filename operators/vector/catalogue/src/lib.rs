//! Generator of catalogues: the options of one version of Vector, from the output of `vector generate-schema` and from
//! measured facts that this output does not contain. Validation uses only the catalogue.

mod catalogue;
mod new_version;
mod normalize;
mod schema;
mod schema_union;
mod traits;

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

pub use crate::new_version::{CatalogueChange, NewVersion, new_version, packed_schema};
use crate::schema::Schema;
use crate::traits::Traits;

/// Measured facts by version, the oldest first. Those of a later version are a JSON Merge Patch (RFC 7386) for the ones before.
const MEASURED: [(&str, &str); 2] = [
    ("0.57", include_str!("../vector-0.57/traits.json")),
    ("0.58", include_str!("../vector-0.58/traits.json")),
];

/// Catalogue of a version for which only the schema is known.
#[derive(Debug)]
pub struct AdaptedCatalogue {
    /// Text of the catalogue.
    pub text: String,
    /// Component types that the measured version does not have: unknown options are reported as warnings, and their
    /// event types are not checked.
    pub unmeasured: Vec<String>,
}

/// Returns the text of the catalogue for a folder with `schema.json` or `schema.json.gz`, and `traits.json`, which has the
/// facts that differ from those of the measured version before.
///
/// # Errors
///
/// If a file cannot be read, or if the traits do not match the schema.
pub fn measured(folder: &Path) -> anyhow::Result<String> {
    let schema = Schema::new(read(&folder.join("schema.json"))?)?;
    let (_, traits) = own_facts(folder)?;
    Ok(printed(&catalogue::from_schema(&schema, &traits)?.0))
}

/// Reads the facts of a folder. Returns the version before it, too.
fn own_facts(folder: &Path) -> anyhow::Result<(Option<&'static str>, Traits)> {
    let own: Value = read(&folder.join("traits.json"))?;
    let version = own["version"].as_str().and_then(number);
    let version = version.context("traits.json has no `version`, such as `0.57`")?;
    let mut facts = facts(|known| known < version)?;
    json_patch::merge(&mut facts, &own);
    let mut before = MEASURED.iter().map(|(known, _)| *known);
    let before = before.rfind(|known| number(known).is_some_and(|known| known < version));
    let traits = Traits::deserialize(facts).context("traits.json")?;
    Ok((before, traits))
}

/// Returns the measured facts of the newest of the chosen versions, or null if none is chosen.
fn facts(is_chosen: impl Fn((u32, u32)) -> bool) -> anyhow::Result<Value> {
    let mut facts = Value::Null;
    for (version, own) in MEASURED {
        if number(version).is_some_and(&is_chosen) {
            json_patch::merge(&mut facts, &serde_json::from_str(own)?);
        }
    }
    Ok(facts)
}

/// Returns the major and minor number of a version.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the catalogue of a version of Vector from its schema, with the measured facts of the version before, or of the
/// oldest measured one, as far as they apply.
///
/// # Errors
///
/// If the schema is not the output of `vector generate-schema`.
pub fn adapted(schema: Value, version: &str) -> anyhow::Result<AdaptedCatalogue> {
    let schema = Schema::new(schema)?;
    let wanted = number(version).with_context(|| format!("`{version}` is no version"))?;
    let (oldest, _) = MEASURED[0];
    let facts = facts(|known| known <= wanted || number(oldest) == Some(known))?;
    let measured = Traits::deserialize(facts).context("the measured facts")?;
    let (traits, unmeasured) = Traits::adapted(measured, &schema, version)?;
    let (catalogue, _) = catalogue::from_schema(&schema, &traits)?;
    Ok(AdaptedCatalogue {
        text: printed(&catalogue),
        unmeasured,
    })
}

/// Prints the catalogue with one line for each component and definition, so that a diff shows what changed in a new
/// version.
fn printed(catalogue: &Value) -> String {
    let mut sections = Vec::new();
    for (name, section) in catalogue.as_object().into_iter().flatten() {
        let name = Value::from(name.as_str());
        let section = match section.as_object() {
            Some(entries) => {
                let entries = entries.iter();
                let lines =
                    entries.map(|(name, entry)| format!("{}:{entry}", Value::from(name.as_str())));
                let lines: Vec<_> = lines.collect();
                format!("{{\n{}\n}}", lines.join(",\n"))
            }
            None => section.to_string(),
        };
        sections.push(format!("{name}:{section}"));
    }
    format!("{{\n{}\n}}\n", sections.join(",\n"))
}

/// Reads a JSON file, or its gzip-compressed form if the file does not exist.
fn read(path: &Path) -> anyhow::Result<Value> {
    let packed = path.with_extension("json.gz");
    let mut text = String::new();
    if path.exists() {
        text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    } else {
        let file = fs::File::open(&packed).with_context(|| packed.display().to_string())?;
        GzDecoder::new(file)
            .read_to_string(&mut text)
            .with_context(|| packed.display().to_string())?;
    }
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_catalogues_are_up_to_date() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (version, _) in MEASURED {
            let made = measured(&here.join(format!("vector-{version}"))).expect("a catalogue");
            let committed = here.join(format!("../config/catalogue/{version}.json"));
            let committed = fs::read_to_string(committed);
            assert!(
                committed.expect("the catalogue") == made,
                "the catalogue is outdated; generate it with: cargo xtask vector-version {version}"
            );
        }
    }

    fn shipped_schema() -> Value {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        read(&here.join("vector-0.57/schema.json")).expect("a schema")
    }

    #[test]
    fn the_schema_of_the_shipped_version_yields_the_shipped_catalogue() {
        let made = adapted(shipped_schema(), "0.57").expect("a catalogue");
        assert!(made.unmeasured.is_empty(), "{:?}", made.unmeasured);
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/catalogue/0.57.json");
        assert!(made.text == fs::read_to_string(committed).expect("the catalogue"));
    }

    #[test]
    fn another_version_may_have_other_types() {
        let mut schema = shipped_schema();
        let sinks = schema["definitions"]["vector::sinks::Sinks"]["oneOf"].as_array_mut();
        let sinks = sinks.expect("a list of sinks");
        let path = "/allOf/1/properties/type/const";
        sinks.retain(|sink| sink.pointer(path) != Some(&"papertrail".into()));
        for sink in sinks {
            let name = sink.pointer_mut(path).expect("a name");
            if *name == "loki" {
                *name = "loki_next".into();
            }
        }
        let made = adapted(schema, "0.56").expect("a catalogue");
        assert_eq!(made.unmeasured, ["sink loki_next"]);
        let catalogue: Value = serde_json::from_str(&made.text).expect("JSON");
        assert_eq!(catalogue["version"], "0.56");
        let sinks = &catalogue["sinks"];
        assert!(sinks["loki"].is_null() && sinks["papertrail"].is_null());
        assert_eq!(
            sinks["loki_next"]["accepts"],
            serde_json::json!(["log", "metric", "trace"])
        );
        assert!(sinks["loki_next"]["options"]["properties"]["endpoint"]["$ref"].is_string());
    }

    #[test]
    fn another_document_is_not_taken_for_a_schema() {
        let error = adapted(serde_json::json!({"a": 1}), "0.58").expect_err("no schema");
        assert!(
            error.to_string().contains("vector generate-schema"),
            "{error}"
        );
    }
}
