//! Generates the catalogue of one version of Vector from the output of `vector generate-schema` and from measured facts
//! that this output does not contain. Validation uses only the catalogue.

mod catalogue;
mod normalize;
mod schema;
mod schema_union;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use flate2::read::GzDecoder;
use serde_json::Value;

/// Generate the catalogue of a version of Vector.
#[derive(Parser)]
struct Args {
    /// Directory that contains `schema.json` or `schema.json.gz`, the output of `vector generate-schema`, and
    /// `traits.json`, the event types of each component and where unknown options are rejected.
    folder: PathBuf,
    /// Output file for the catalogue. Default: standard output.
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let text = text_of(&args.folder)?;
    match args.output_file {
        Some(path) => fs::write(&path, text).with_context(|| path.display().to_string())?,
        None => print!("{text}"),
    }
    Ok(())
}

/// Returns the text of the catalogue for an input directory.
fn text_of(folder: &Path) -> anyhow::Result<String> {
    let schema = schema::Schema::new(read(&folder.join("schema.json"))?)?;
    let traits: Value = read(&folder.join("traits.json"))?;
    let traits = serde_json::from_value(traits).context("traits.json")?;
    let catalogue = catalogue::of(&schema, &traits)?;
    Ok(printed(&catalogue))
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
        let made = text_of(&here.join("vector-0.57")).expect("a catalogue");
        let committed = fs::read_to_string(here.join("../config/catalogue/0.57.json"));
        assert!(
            committed.expect("the catalogue") == made,
            "the catalogue is outdated; generate it with: cargo run -p vector-catalogue -- operators/vector/catalogue/vector-0.57 --output-file operators/vector/config/catalogue/0.57.json"
        );
    }
}
