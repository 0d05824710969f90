//! Dotted field paths.

/// Returns the fields of a path, from the root.
pub(super) fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|step| !step.is_empty())
}
