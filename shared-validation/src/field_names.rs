//! Names of the fields of a type, known at compile time, so that a path that names no field does not compile.

use std::marker::PhantomData;

/// Type whose fields have known names. [`fields!`](crate::fields) checks paths by them.
///
/// Derive it for every struct in a spec: `#[derive(FieldNames)]`.
pub trait FieldNames {
    /// Fields of the type, as JSON names them.
    const FIELDS: Fields;
}

/// Fields of a type.
#[derive(Clone, Copy, Debug)]
pub enum Fields {
    /// Any field may exist: the names are not known.
    Any,
    /// The only fields.
    Known(&'static [Field]),
}

/// Field of a type.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in JSON.
    pub name: &'static str,
    /// Fields of its value.
    pub fields: Fields,
}

impl<T: FieldNames> FieldNames for Option<T> {
    const FIELDS: Fields = T::FIELDS;
}

impl<T: FieldNames> FieldNames for Box<T> {
    const FIELDS: Fields = T::FIELDS;
}

impl<T: FieldNames> FieldNames for Vec<T> {
    const FIELDS: Fields = T::FIELDS;
}

/// Access to the fields of a type, whether it implements [`FieldNames`] or not. Only the derive macro uses it: with
/// [`OfOtherType`] in scope, its constant `FIELDS` exists for every type.
pub struct OfType<T>(PhantomData<T>);

impl<T: FieldNames> OfType<T> {
    /// Fields of a type that implements [`FieldNames`].
    pub const FIELDS: Fields = T::FIELDS;
}

/// Fields of a type that does not implement [`FieldNames`].
pub trait OfOtherType {
    /// Any field.
    const FIELDS: Fields = Fields::Any;
}

impl<T> OfOtherType for OfType<T> {}

/// Checks that a path in printed form, such as `spec.sources[*].name`, names a field of `K`.
///
/// # Panics
///
/// If it does not. In a constant, this is a compile error.
pub const fn assert_field<K: FieldNames>(path: &str) {
    if !has_field(K::FIELDS, path.as_bytes(), 0) {
        let message = Message::new("the kind has no field `", path);
        panic!("{}", message.as_str());
    }
}

/// Returns true if the fields contain the rest of a path from a position.
const fn has_field(fields: Fields, path: &[u8], start: usize) -> bool {
    let Fields::Known(known) = fields else {
        return true;
    };
    let end = end_of_name(path, start);
    let mut at = 0;
    while at < known.len() {
        if is_equal(known[at].name.as_bytes(), path, start, end) {
            let next = end_of_segment(path, end);
            return next >= path.len() || has_field(known[at].fields, path, next + 1);
        }
        at += 1;
    }
    false
}

/// Returns the position after the name that begins at `start`.
const fn end_of_name(path: &[u8], start: usize) -> usize {
    let mut end = start;
    while end < path.len() && path[end] != b'.' && path[end] != b'[' {
        end += 1;
    }
    end
}

/// Returns the position of the dot after a name and its indices.
const fn end_of_segment(path: &[u8], start: usize) -> usize {
    let mut end = start;
    while end < path.len() && path[end] != b'.' {
        end += 1;
    }
    end
}

const fn is_equal(name: &[u8], path: &[u8], start: usize, end: usize) -> bool {
    if name.len() != end - start {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if name[at] != path[start + at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Message of a compile error. A constant cannot format one.
struct Message {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl Message {
    const MAX: usize = 256;

    const fn new(beginning: &str, path: &str) -> Self {
        let message = Self {
            bytes: [0; Self::MAX],
            length: 0,
        };
        message.with(beginning).with(path).with("`")
    }

    const fn with(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() && self.length < Self::MAX {
            self.bytes[self.length] = text[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    const fn as_str(&self) -> &str {
        let (used, _) = self.bytes.split_at(self.length);
        match std::str::from_utf8(used) {
            Ok(text) => text,
            Err(_) => "the kind has no field of this name",
        }
    }
}

/// Paths of fields of a kind, in printed form. A path that names no field does not compile.
///
/// ```
/// use lockstep_shared_validation::{FieldNames, fields};
///
/// #[derive(FieldNames)]
/// #[serde(rename_all = "camelCase")]
/// struct Greeting {
///     spec: GreetingSpec,
/// }
///
/// #[derive(FieldNames)]
/// #[serde(rename_all = "camelCase")]
/// struct GreetingSpec {
///     served_text: String,
/// }
///
/// assert_eq!(fields!(Greeting, "spec.servedText"), ["spec.servedText"]);
/// ```
///
/// ```compile_fail
/// # use lockstep_shared_validation::{FieldNames, fields};
/// # #[derive(FieldNames)]
/// # struct Greeting { spec: GreetingSpec }
/// # #[derive(FieldNames)]
/// # struct GreetingSpec { text: String }
/// let fields = fields!(Greeting, "spec.txet");
/// ```
#[macro_export]
macro_rules! fields {
    ($kind:ty, $($path:literal),+ $(,)?) => {{
        $(const _: () = $crate::field_names::assert_field::<$kind>($path);)+
        const PATHS: &[&str] = &[$($path),+];
        PATHS
    }};
}

/// Path of a field of a kind, in printed form, for the error at this field. It is formatted, so that an index can be a
/// variable. A path that names no field does not compile.
///
/// ```
/// use lockstep_shared_validation::{FieldNames, field};
///
/// #[derive(FieldNames)]
/// struct Greeting {
///     spec: GreetingSpec,
/// }
///
/// #[derive(FieldNames)]
/// struct GreetingSpec {
///     texts: Vec<String>,
/// }
///
/// let at = 2;
/// assert_eq!(field!(Greeting, "spec.texts[{at}]"), "spec.texts[2]");
/// ```
///
/// ```compile_fail
/// # use lockstep_shared_validation::{FieldNames, field};
/// # #[derive(FieldNames)]
/// # struct Greeting { spec: GreetingSpec }
/// # #[derive(FieldNames)]
/// # struct GreetingSpec { texts: Vec<String> }
/// # let at = 2;
/// let path = field!(Greeting, "spec.text[{at}]");
/// ```
#[macro_export]
macro_rules! field {
    ($kind:ty, $path:literal) => {{
        const _: () = $crate::field_names::assert_field::<$kind>($path);
        ::std::format!($path)
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &[Field] = &[Field {
        name: "name",
        fields: Fields::Known(&[]),
    }];
    const SPEC: &[Field] = &[
        Field {
            name: "sources",
            fields: Fields::Known(SOURCES),
        },
        Field {
            name: "labels",
            fields: Fields::Any,
        },
    ];

    struct Kind;

    impl FieldNames for Kind {
        const FIELDS: Fields = Fields::Known(&[Field {
            name: "spec",
            fields: Fields::Known(SPEC),
        }]);
    }

    fn exists(path: &str) -> bool {
        has_field(Kind::FIELDS, path.as_bytes(), 0)
    }

    #[test]
    fn a_path_names_a_field_if_each_segment_does() {
        for path in [
            "spec",
            "spec.sources",
            "spec.sources[*].name",
            "spec.labels.a.b",
        ] {
            assert!(exists(path), "{path}");
        }
        for path in [
            "",
            "sepc",
            "spec.source",
            "spec.sources[*].nam",
            "spec.sources.name.a",
        ] {
            assert!(!exists(path), "{path}");
        }
    }

    #[test]
    #[should_panic(expected = "the kind has no field `spec.source`")]
    fn the_message_names_the_path() {
        assert_field::<Kind>("spec.source");
    }
}
