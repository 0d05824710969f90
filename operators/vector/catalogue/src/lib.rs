//! Generator of catalogues: the options of one version of Vector, from the output of `vector generate-schema` and from
//! measured facts that this output does not contain. Validation uses only the catalogue.

mod catalogue;
mod normalize;
mod schema;
mod schema_union;
mod traits;

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::schema::Schema;
use crate::traits::Traits;

/// Measured facts about the version that is shipped.
const MEASURED: &str = include_str!("../vector-0.57/traits.json");

/// Catalogue of a version for which only the schema is known.
#[derive(Debug)]
pub struct AdaptedCatalogue {
    /// Text of the catalogue.
    pub text: String,
    /// Component types that the measured version does not have: unknown options are reported as warnings, and their
    /// event types are not checked.
    pub unmeasured: Vec<String>,
}

/// Returns the text of the catalogue for a folder with `schema.json` or `schema.json.gz`, and `traits.json`.
///
/// # Errors
///
/// If a file cannot be read, or if the traits do not match the schema.
pub fn measured(folder: &Path) -> anyhow::Result<String> {
    let schema = Schema::new(read(&folder.join("schema.json"))?)?;
    let traits: Value = read(&folder.join("traits.json"))?;
    let traits: Traits = serde_json::from_value(traits).context("traits.json")?;
    Ok(printed(&catalogue::of(&schema, &traits)?))
}

/// Returns the catalogue of a version of Vector from its schema, with the measured facts of the shipped version as far as
/// they apply.
///
/// # Errors
///
/// If the schema is not the output of `vector generate-schema`.
pub fn adapted(schema: Value, version: &str) -> anyhow::Result<AdaptedCatalogue> {
    let schema = Schema::new(schema)?;
    let measured: Traits =
        serde_json::from_str(MEASURED).context("the traits of the shipped version")?;
    let (traits, unmeasured) = Traits::adapted(measured, &schema, version)?;
    let catalogue = catalogue::of(&schema, &traits)?;
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
    fn the_committed_catalogue_is_up_to_date() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let made = measured(&here.join("vector-0.57")).expect("a catalogue");
        let committed = fs::read_to_string(here.join("../config/catalogue/0.57.json"));
        assert!(
            committed.expect("the catalogue") == made,
            "the catalogue is outdated; generate it with: cargo run -p vector-catalogue -- operators/vector/catalogue/vector-0.57 --output-file operators/vector/config/catalogue/0.57.json"
        );
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
        let made = adapted(schema, "0.58").expect("a catalogue");
        assert_eq!(made.unmeasured, ["sink loki_next"]);
        let catalogue: Value = serde_json::from_str(&made.text).expect("JSON");
        assert_eq!(catalogue["version"], "0.58");
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
