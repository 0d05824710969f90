//! Paths of options.

use lockstep_shared_validation::{FieldPath, LazyPath};

/// Appends a name to a path: `.name` if it could be the name of an option, `[name]` otherwise.
#[must_use]
pub fn below(path: &FieldPath, name: &str) -> FieldPath {
    lazily_below(&path.lazy(), name).to_path()
}

/// Appends a name to the path of a walk, as [`below`] does.
#[must_use]
pub fn lazily_below<'a>(path: &'a LazyPath<'a>, name: &'a str) -> LazyPath<'a> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_plain) {
        path.child(name)
    } else {
        path.key(name)
    }
}
