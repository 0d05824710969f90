//! Environments of VRL programs, by command: their compiler, their limits, and the files that contain programs.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use lockstep_sdk::describe_read_error;
use lockstep_vector_api::{ComponentLimits, ProgramFileError, ProgramLimits, VrlEnvironment};

use crate::compilers;

/// Maximum size of a program file, in bytes: more than any limit of programs.
const LONGEST_FILE: u64 = 1 << 20;

/// Environment of `lockstep vector validate`, whose user owns the configuration. Program files are read where Vector
/// reads them: relative names are relative to the working directory.
pub(crate) const OF_VECTOR: VrlEnvironment = VrlEnvironment {
    compiler: compilers::offline_compiler,
    limits: &ProgramLimits::OFFLINE,
    components: ComponentLimits::OfVector,
    read_file: |name| read(Path::new(name)).map_err(ProgramFileError::Unreadable),
    check_file: Some(|name| check(Path::new(name))),
};

/// Returns the environment for the pipelines that a subcommand validates. Their programs have the limits of the webhook,
/// so that all commands agree with it.
#[must_use]
pub fn of_pipelines(command: &str) -> VrlEnvironment {
    match command {
        // The API server waits for the response to each review.
        "webhook" => VrlEnvironment::shared(compilers::compiler_with_deadline),
        "check" => VrlEnvironment {
            read_file: read_below_working_directory,
            ..VrlEnvironment::shared(compilers::compiler)
        },
        _ => VrlEnvironment::shared(compilers::compiler),
    }
}

/// Reads a program file of a pipeline if it is below the working directory. Other files are those of the agent's host,
/// and an error in one of this machine would print a part of it.
fn read_below_working_directory(name: &str) -> Result<String, ProgramFileError> {
    let here = Path::new(".").canonicalize();
    let path = Path::new(name).canonicalize();
    match (here, path) {
        (Ok(here), Ok(path)) if path.starts_with(&here) => {
            read(&path).map_err(ProgramFileError::Unreadable)
        }
        _ => Err(ProgramFileError::OfHost),
    }
}

/// Checks that a file can be read, without reading it: its format is the matter of the function that names it.
fn check(path: &Path) -> Result<(), String> {
    let wrong = |error| describe_read_error(&error);
    if !fs::metadata(path).map_err(wrong)?.is_file() {
        return Err("is no file".to_owned());
    }
    File::open(path).map(drop).map_err(wrong)
}

fn read(path: &Path) -> Result<String, String> {
    let wrong = |error| format!("the file with the program {}", describe_read_error(&error));
    // Another file, such as a pipe, may never end.
    if !fs::metadata(path).map_err(wrong)?.is_file() {
        return Err("must be the name of a file with a program".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(wrong)?;
    let mut file = file.take(LONGEST_FILE + 1);
    file.read_to_string(&mut text).map_err(wrong)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(format!(
            "the file with the program has more than {LONGEST_FILE} bytes; split it into several transforms"
        ));
    }
    Ok(text)
}
