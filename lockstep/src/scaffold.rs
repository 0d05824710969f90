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
    report(lockstep_scaffold::add(args, Path::new(".")).map(|changed| {
        let changed = changed.iter();
        let lines: Vec<_> = changed
            .map(|path| format!("Wrote {}\n", path.display()))
            .collect();
        lines.concat()
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
            ExitCode::FAILURE
        }
    }
}
