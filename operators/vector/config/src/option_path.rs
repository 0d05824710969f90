//! Paths of options.

use lockstep_shared_validation::FieldPath;

/// Appends a name to a path: `.name` if it could be the name of an option, `[name]` otherwise.
#[must_use]
pub fn below(path: &FieldPath, name: &str) -> FieldPath {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(is_plain) {
        path.child(name)
    } else {
        path.key(name)
    }
}
