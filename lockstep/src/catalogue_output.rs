//! Output of the subcommands that write a catalogue.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Exit code if an input cannot be read.
const UNREADABLE: u8 = 2;

/// Writes a catalogue to a file, or without one to standard output. The file is compressed if its name ends with `.gz`.
pub(crate) fn write(output_file: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match output_file {
        Some(path) => {
            let content = content(path, text)?;
            fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))?;
            println!("Wrote {}", path.display());
            Ok(())
        }
        None => Ok(io::stdout().lock().write_all(text.as_bytes())?),
    }
}

fn content(path: &Path, text: &str) -> io::Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Ok(text.as_bytes().to_vec());
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Reports an error, and returns the exit code.
pub(crate) fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error:#}");
            ExitCode::from(UNREADABLE)
        }
    }
}
