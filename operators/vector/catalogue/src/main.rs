//! Makes the catalogue of one version of Vector: what `vector generate-schema` prints, and beside it what
//! that does not say and was measured, become one file that judges.

mod alternatives;
mod catalogue;
mod normal;
mod schema;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use flate2::read::GzDecoder;
use serde_json::Value;

/// Makes the catalogue of a version of Vector.
#[derive(Parser)]
struct Args {
    /// A folder with `schema.json`, or `schema.json.gz`, as `vector generate-schema` prints it, and
    /// `traits.json`: the event types of each component and where unknown options are refused.
    folder: PathBuf,
    /// The catalogue. Without it, standard output.
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

/// The catalogue of what lies in a folder.
fn text_of(folder: &Path) -> anyhow::Result<String> {
    let schema = schema::Schema::new(read(&folder.join("schema.json"))?)?;
    let traits: Value = read(&folder.join("traits.json"))?;
    let traits = serde_json::from_value(traits).context("traits.json")?;
    let catalogue = catalogue::of(&schema, &traits)?;
    Ok(printed(&catalogue))
}

/// The catalogue with a line for each component and definition: a new version shows in a difference what has
/// changed.
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

/// Reads JSON, packed if there is no other.
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
    fn what_is_committed_is_what_is_made() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let made = text_of(&here.join("vector-0.57")).expect("a catalogue");
        let committed = fs::read_to_string(here.join("../rules/catalogue/0.57.json"));
        assert!(
            committed.expect("the catalogue") == made,
            "make it anew: cargo run -p vector-catalogue -- operators/vector/catalogue/vector-0.57 --write operators/vector/rules/catalogue/0.57.json"
        );
    }
}
