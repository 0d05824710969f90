//! Path of a field in an object: `spec.sinks[2].inputs`, `spec.tags[team]`.

use std::borrow::Cow;
use std::fmt;

use crate::field::text::{MAX_PATH_BYTES, Name, shortened_name};

/// Field path. It prints as `field.Path` of apimachinery, except that long names in it are shortened.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// Returns the path of the object itself. It prints as `<nil>`, as in apimachinery.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a path from text in printed form, such as `spec.storage.sizeGib`.
    #[must_use]
    pub fn new(printed: impl Into<String>) -> Self {
        Self::bounded(printed.into())
    }

    fn bounded(printed: String) -> Self {
        match shortened_name(&printed, MAX_PATH_BYTES) {
            Cow::Borrowed(_) => Self(printed),
            Cow::Owned(shortened) => Self(shortened),
        }
    }

    /// Returns the path of a field of this value.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Cursor::Printed(&self.0).child(name).to_path()
    }

    /// Returns the path of an item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Cursor::Printed(&self.0).index(index).to_path()
    }

    /// Returns the path of an entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Cursor::Printed(&self.0).key(key).to_path()
    }

    /// Returns the printed path; empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if this path equals `ancestor` or is below it. All paths are below the root, the empty
    /// path.
    #[must_use]
    pub fn is_descendant_of(&self, ancestor: &str) -> bool {
        self.0.strip_prefix(ancestor).is_some_and(|rest| {
            ancestor.is_empty() || rest.is_empty() || rest.starts_with(['.', '['])
        })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// Field path during a walk through an object. It borrows from its parents and becomes text only if an error is
/// reported.
#[derive(Clone, Copy)]
pub(crate) enum Cursor<'a> {
    Root,
    Printed(&'a str),
    Child(&'a Cursor<'a>, Name<'a>),
    Index(&'a Cursor<'a>, usize),
    Key(&'a Cursor<'a>, Name<'a>),
    /// Map entry that prints like a field, as the API server does in structural errors.
    Entry(&'a Cursor<'a>, Name<'a>),
}

impl<'a> Cursor<'a> {
    pub(crate) fn child(&'a self, name: &'a str) -> Cursor<'a> {
        Cursor::Child(self, Name::new(name))
    }

    pub(crate) fn index(&'a self, index: usize) -> Cursor<'a> {
        Cursor::Index(self, index)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Cursor<'a> {
        Cursor::Key(self, Name::new(key))
    }

    pub(crate) fn entry(&'a self, key: &'a str) -> Cursor<'a> {
        Cursor::Entry(self, Name::new(key))
    }

    pub(crate) fn to_path(self) -> FieldPath {
        let mut out = String::new();
        self.print(&mut out);
        FieldPath::bounded(out)
    }

    /// Returns the path of the schema node for this value: `spec.sinks[].labels[*]`.
    pub(crate) fn to_pattern(self) -> String {
        match self {
            Cursor::Root => String::new(),
            Cursor::Printed(text) => text.to_owned(),
            Cursor::Child(parent, name) => match parent.to_pattern() {
                parent if parent.is_empty() => name.to_string(),
                parent => format!("{parent}.{name}"),
            },
            Cursor::Index(parent, _) => format!("{}[]", parent.to_pattern()),
            Cursor::Key(parent, _) | Cursor::Entry(parent, _) => {
                format!("{}[*]", parent.to_pattern())
            }
        }
    }

    fn print(self, out: &mut String) {
        match self {
            Cursor::Root => {}
            Cursor::Printed(text) => out.push_str(text),
            // apimachinery prints an empty name as a subscript.
            Cursor::Child(parent, name) if name.is_empty() => {
                parent.print(out);
                out.push_str("[]");
            }
            Cursor::Child(parent, name) | Cursor::Entry(parent, name) => {
                parent.print(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&name.to_string());
            }
            Cursor::Index(parent, index) => {
                parent.print(out);
                out.push_str(&format!("[{index}]"));
            }
            Cursor::Key(parent, key) => {
                parent.print(out);
                out.push_str(&format!("[{key}]"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::text::{MAX_NAME_BYTES, hashed_bytes};

    #[test]
    fn children_indices_and_keys_print_as_apimachinery_prints_them() {
        let path = FieldPath::root()
            .child("spec")
            .child("sinks")
            .index(2)
            .child("labels")
            .key("app.kubernetes.io/name");
        assert_eq!(
            path.to_string(),
            "spec.sinks[2].labels[app.kubernetes.io/name]"
        );
        assert_eq!(FieldPath::root().to_string(), "<nil>");
        assert_eq!(FieldPath::root().child("a").child("").to_string(), "a[]");
    }

    #[test]
    fn a_path_lies_within_itself_and_its_ancestors_only() {
        let path = FieldPath::new("spec.storage.sizeGib");
        assert!(path.is_descendant_of("spec.storage"));
        assert!(path.is_descendant_of("spec.storage.sizeGib"));
        assert!(!path.is_descendant_of("spec.stor"));
        assert!(FieldPath::new("spec.tags[a]").is_descendant_of("spec.tags"));
        assert!(path.is_descendant_of(FieldPath::root().as_str()));
    }

    #[test]
    fn a_long_name_is_read_once_for_all_paths_below_it() {
        let long = "k".repeat(3 << 20);
        let before = hashed_bytes();
        let spec = Cursor::Root.child("spec");
        let at = spec.entry(&long);
        for index in 0..100 {
            let name = format!("c{index}");
            let below = at.child(&name);
            let path = below.to_path();
            assert!(path.as_str().ends_with(&name));
            assert_eq!(below.to_pattern(), format!("spec[*].{name}"));
        }
        assert_eq!(hashed_bytes() - before, long.len());
    }

    #[test]
    fn a_path_stays_short_whatever_names_it_has() {
        let long = "k".repeat(3 << 20);
        let at = Cursor::Root.child("spec");
        let at = at.key(&long);
        assert!(at.child("a").to_path().as_str().len() < 2 * MAX_NAME_BYTES);
        let mut path = FieldPath::root();
        for _ in 0..200 {
            path = path.child(&"n".repeat(200));
        }
        assert!(path.as_str().len() <= MAX_PATH_BYTES);
        assert_ne!(path.child("a"), path.child("b"));
    }
}
