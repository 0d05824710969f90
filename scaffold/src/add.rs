//! `lockstep add`: more in an existing repository.

mod case;
mod kind;
mod rule;

use std::path::Path;

use clap::{Parser, Subcommand};

use crate::add::case::CaseArgs;
use crate::add::kind::KindArgs;
use crate::add::rule::RuleArgs;
use crate::added::Added;
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
    /// Add a rule to a kind, with a case that satisfies it and one that violates it. It forbids an example, which you replace.
    Rule(RuleArgs),
    /// Add a case to a kind: an object and the errors that it must get.
    Case(CaseArgs),
}

/// Adds to the repository in a folder.
///
/// # Errors
///
/// A name is not allowed, a file exists, a file has no place for a change, or the folder is no repository of an operator. All
/// files are as they were then, unless the error is [`Error::NotRestored`].
pub fn add(args: &AddArgs, folder: &Path) -> Result<Added, Error> {
    let project = Project::in_folder(folder);
    match &args.what {
        What::Kind(args) => kind::add(args, &project),
        What::Rule(args) => rule::add(args, &project),
        What::Case(args) => case::add(args, &project),
    }
}
