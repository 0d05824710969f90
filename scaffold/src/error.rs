//! Errors of scaffolding.

use std::io;
use std::path::{Path, PathBuf};

/// Error of scaffolding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name cannot be used.
    #[error("{what} is `{value}`: it {requirement}")]
    Name {
        /// Name of the argument.
        what: &'static str,
        /// Value of the argument.
        value: String,
        /// Allowed values.
        requirement: &'static str,
    },
    /// The folder of a new repository has files.
    #[error("{0} is not empty; choose another folder with `--directory`")]
    NotEmpty(PathBuf),
    /// A file exists already.
    #[error("{0} exists; delete it, or choose another name")]
    Exists(PathBuf),
    /// A rule has the id already, or a function has the name of that of the rule.
    #[error("{path}: `{name}` exists already; choose another id for the rule")]
    RuleExists {
        /// File that was read.
        path: PathBuf,
        /// Id of the rule, or name of the function.
        name: String,
    },
    /// The library has a module of the name already.
    #[error(
        "{path}: the name `{name}` exists already; remove or rename what has it, or choose another kind"
    )]
    ModuleExists {
        /// File that was read.
        path: PathBuf,
        /// Name of the module of the kind.
        name: String,
    },
    /// A file cannot be parsed.
    #[error("{path}:{line}: {problem}; correct the file first")]
    Syntax {
        /// File that was read.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Error of the parser.
        problem: String,
    },
    /// A change of an object cannot be made.
    #[error("`--set {path}`: the segment `{segment}` {problem}")]
    Set {
        /// Path of the field.
        path: String,
        /// Segment of the path.
        segment: String,
        /// Problem of the segment, and its solution.
        problem: String,
    },
    /// The folder is no repository of an operator.
    #[error("{path}: {problem}; run the command in a repository that `lockstep new` has created")]
    NoProject {
        /// File that was read.
        path: PathBuf,
        /// Missing part.
        problem: &'static str,
    },
    /// A file of a kind does not exist.
    #[error(
        "{path} does not exist, where {content} of the kind `{kind}` is expected; create the file, or correct `--kind`"
    )]
    NoFile {
        /// Expected file.
        path: PathBuf,
        /// Kind of the command.
        kind: String,
        /// Content of the file.
        content: &'static str,
    },
    /// A file of the author's has no place for a change.
    #[error("{path}: found no place for the change; looked for {missing}; add by hand: {by_hand}")]
    NoPlace {
        /// File that was read.
        path: PathBuf,
        /// Part that was looked for.
        missing: String,
        /// Code or text to write.
        by_hand: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Files that were written could not be restored after another one could not be written.
    #[error("{cause}; {}", listed(files))]
    NotRestored {
        /// Files that are not as they were.
        files: Vec<Unrestored>,
        /// Error of the file that could not be written.
        cause: Box<Error>,
    },
}

/// File that is not as it was.
#[derive(Debug, thiserror::Error)]
#[error("{path} is changed, and cannot be restored: {error}; restore it by hand")]
#[non_exhaustive]
pub struct Unrestored {
    /// Path of the file.
    pub path: PathBuf,
    /// Error of the operating system.
    pub error: io::Error,
}

fn listed(files: &[Unrestored]) -> String {
    let files = files.iter().map(ToString::to_string);
    files.collect::<Vec<_>>().join("; ")
}

impl Error {
    /// Returns a function that adds the path to an error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Self::File { path, error }
    }

    /// Returns a function that adds the path to an error of the parser of Rust.
    pub(crate) fn syntax(path: &Path) -> impl FnOnce(syn::Error) -> Self {
        let path = path.to_owned();
        |error| Self::Syntax {
            path,
            line: error.span().start().line,
            problem: error.to_string(),
        }
    }
}
