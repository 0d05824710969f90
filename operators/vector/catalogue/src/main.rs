//! Generates the catalogue of the shipped version of Vector.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;

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
    let text = vector_catalogue::measured(&args.folder)?;
    match args.output_file {
        Some(path) => {
            fs::write(&path, text).with_context(|| path.display().to_string())?;
            println!("Wrote {}", path.display());
        }
        None => print!("{text}"),
    }
    Ok(())
}
