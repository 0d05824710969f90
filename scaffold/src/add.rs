//! `lockstep add`: more in an existing repository.

mod kind;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::add::kind::KindArgs;
use crate::error::Error;
use crate::project::Project;

/// Add to the repository in the current folder.
#[derive(Debug, Parser)]
#[command(name = "add")]
pub struct AddArgs {
    /// Part to add.
    #[command(subcommand)]
    what: What,
}

/// Parts that can be added.
#[derive(Debug, Subcommand)]
enum What {
    /// Add a kind with its operator, rules, examples and tests.
    Kind(KindArgs),
}

/// Adds to the repository in a folder, and returns the files that were changed besides new ones.
///
/// # Errors
///
/// A name is not allowed, a file exists, or the folder is no repository of an operator. Nothing is written then.
pub fn add(args: &AddArgs, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let project = Project::in_folder(folder);
    match &args.what {
        What::Kind(args) => kind::add(args, &project),
    }
}
