//! Output of subcommands that write a file, or print what would be in it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Exit code if an input cannot be read.
const UNREADABLE: u8 = 2;

/// Writes the output of a subcommand to a file, or without one to standard output. The file is compressed if its name ends with
/// `.gz`.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_output(output_file: Option<&Path>, text: &str) -> anyhow::Result<()> {
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

/// Reports an error on standard error, and returns the exit code: 2 if there is one.
pub fn exit_code_of_output(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error:#}");
            ExitCode::from(UNREADABLE)
        }
    }
}
