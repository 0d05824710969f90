//! Marker of the files that the program writes.

/// Returns the beginning of the comment in a file that a program writes, in all versions of the program.
pub(crate) fn marker(program: &str) -> String {
    format!("Written by `{program} manifests`")
}
