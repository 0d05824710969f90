//! `lockstep new` and `lockstep add`: scaffolding of operators.

use std::path::Path;
use std::process::ExitCode;

use lockstep_scaffold::{AddArgs, Error, NewArgs};

/// Creates a repository, and prints the next commands.
pub(crate) fn new(args: &NewArgs) -> ExitCode {
    report(lockstep_scaffold::create(args).map(|folder| {
        format!(
            "Created {folder}. Next:\n\n  cd {folder}\n  cargo run -- manifests\n  cargo run -- dev\n  cargo test\n",
            folder = folder.display()
        )
    }))
}

/// Adds to the repository in the current folder.
pub(crate) fn add(args: &AddArgs) -> ExitCode {
    report(lockstep_scaffold::add(args, Path::new(".")).map(|added| {
        let files = added.files.iter();
        let files = files.map(|path| format!("Wrote {}\n", path.display()));
        let notes = added.notes.iter().map(|note| format!("Check {note}\n"));
        files.chain(notes).collect()
    }))
}

fn report(result: Result<String, Error>) -> ExitCode {
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lockstep: {error}");
            if !matches!(error, Error::NotRestored { .. }) {
                eprintln!("No file was changed.");
            }
            ExitCode::FAILURE
        }
    }
}
