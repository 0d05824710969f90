//! `lockstep vector migrate-data`: moves Vector's data to directories with other names of components.
//!
//! It runs before Vector, when no other process uses the data. A run that is interrupted is continued by the next one, and a
//! run after a complete one changes nothing.

mod buffers;
mod checkpoints;
mod data_directory;
mod sources;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use flate2::read::GzDecoder;
use lockstep_vector_assembly::DataMoves;

use crate::migrate_data::data_directory::DataDirectory;

/// Maximum size of the list, after decompression: many times that of the largest Secret.
const MAX_BYTES: u64 = 64 << 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// List of the directories: compressed JSON with the fields `sources` and `buffers`, each a list of objects with the
    /// fields `from` and `to`.
    #[arg(value_name = "FILE")]
    moves: PathBuf,
    /// Vector's data directory.
    #[arg(long, value_name = "DIRECTORY", default_value = "/vector-data-dir")]
    data_dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match migrate(args) {
        Ok(lines) => {
            for line in lines {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lockstep: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Moves the data, and returns a description of each change and of each directory that was left as it is.
fn migrate(args: &Args) -> anyhow::Result<Vec<String>> {
    let moves = read(&args.moves)
        .with_context(|| format!("the list '{}' cannot be read", args.moves.display()))?;
    let directory = DataDirectory::new(&args.data_dir);
    let mut report = Vec::new();
    let failed = |what: &str| {
        let data_dir = args.data_dir.display();
        format!("the {what} in '{data_dir}' cannot be moved")
    };
    sources::migrate(&directory, &moves.sources, &mut report)
        .with_context(|| failed("read positions"))?;
    buffers::migrate(&directory, &moves.buffers, &mut report)
        .with_context(|| failed("disk buffers"))?;
    Ok(report)
}

fn read(path: &Path) -> anyhow::Result<DataMoves> {
    // The parser reads single bytes.
    let reader = BufReader::new(GzDecoder::new(File::open(path)?).take(MAX_BYTES));
    Ok(serde_json::from_reader(reader)?)
}
