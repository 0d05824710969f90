//! Field path that becomes text only where an error is reported.

use crate::field::path::{Cursor, FieldPath};

/// Field path during a walk through a value. It borrows from its parents, and becomes text where an error is reported.
///
/// # Examples
///
/// ```
/// use crd_validation::FieldPath;
/// use serde_json::{Value, json};
///
/// let spec = FieldPath::new("spec");
/// let (path, names) = (spec.lazy(), json!(["a", ""]));
/// let mut names = names.as_array().into_iter().flatten().enumerate();
/// let empty = names.find(|(_, name)| *name == "");
/// let empty = empty.map(|(index, _)| path.child("names").index(index).to_path().to_string());
/// assert_eq!(empty.as_deref(), Some("spec.names[1]"));
/// ```
#[derive(Clone, Copy)]
pub struct LazyPath<'a>(Cursor<'a>);

impl<'a> LazyPath<'a> {
    /// Returns the path of a field of this value.
    #[must_use]
    pub fn child(&'a self, name: &'a str) -> Self {
        Self(self.0.child(name))
    }

    /// Returns the path of an item of this list.
    #[must_use]
    pub fn index(&'a self, index: usize) -> Self {
        Self(self.0.index(index))
    }

    /// Returns the path of an entry of this map.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> Self {
        Self(self.0.key(key))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn to_path(self) -> FieldPath {
        self.0.to_path()
    }
}

impl FieldPath {
    /// Returns this path as the beginning of a walk.
    #[must_use]
    pub fn lazy(&self) -> LazyPath<'_> {
        LazyPath(Cursor::Printed(self.as_str()))
    }
}
