//! Result of the command `add`.

use std::path::PathBuf;

/// Result of the command `add`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// Sentences on what the author must check.
    pub notes: Vec<String>,
}
