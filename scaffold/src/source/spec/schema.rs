//! Attributes of a field for its schema.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Field, Lit, Meta, Path, Token};

/// Pattern of the schema that admits every word.
pub(crate) const WORDS: &str = "^[^<>]*$";

/// Keyword of the schema of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    /// Bounds of the length.
    Length,
    /// Regular expression.
    Pattern,
}

/// Schema of a text.
pub(crate) struct Schema {
    has_length: bool,
    has_pattern: bool,
    /// If true, another word in the text violates nothing that the schema says of the content.
    pub(crate) admits_words: bool,
}

impl Schema {
    /// Returns the schema of a field. Besides those of schemars, it has the attributes of other crates that schemars reads.
    pub(crate) fn of(field: &Field) -> Self {
        let mut schema = Self {
            has_length: false,
            has_pattern: false,
            admits_words: true,
        };
        for name in ["schemars", "validate", "garde"] {
            for attribute in parts(&field.attrs, name) {
                schema.add(&attribute);
            }
        }
        schema
    }

    fn add(&mut self, attribute: &Meta) {
        let name = attribute.path().get_ident().map(ToString::to_string);
        match name.as_deref() {
            Some("length") => self.has_length = true,
            Some("regex" | "pattern") => {
                self.has_pattern = true;
                self.admits_words &= pattern(attribute).is_some_and(|pattern| pattern == WORDS);
            }
            // These may be any schema.
            Some(
                "email" | "url" | "contains" | "extend" | "schema_with" | "transform" | "with",
            ) => {
                self.admits_words = false;
            }
            _ => {}
        }
    }

    /// Returns the first keyword that the field does not have.
    pub(crate) fn free_keyword(&self) -> Option<Keyword> {
        if !self.has_length {
            Some(Keyword::Length)
        } else if self.has_pattern {
            None
        } else {
            Some(Keyword::Pattern)
        }
    }
}

/// Returns true if the schema of a field has a name that serde does not use, or lacks the field.
pub(crate) fn is_renamed(field: &Field) -> bool {
    let mut parts = parts(&field.attrs, "schemars").into_iter();
    parts.any(|part| {
        ["rename", "skip"]
            .iter()
            .any(|name| part.path().is_ident(name))
    })
}

/// Returns true if a type derives a trait of a name.
pub(crate) fn derives(attributes: &[Attribute], name: &str) -> bool {
    let derives = attributes.iter().filter(|it| it.path().is_ident("derive"));
    let mut paths = derives.filter_map(|it| {
        it.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
            .ok()
    });
    paths.any(|paths| {
        let mut last = paths.iter().filter_map(|path| path.segments.last());
        last.any(|last| last.ident == name)
    })
}

/// Returns the parts of the attributes of a name.
fn parts(attributes: &[Attribute], name: &str) -> Vec<Meta> {
    let of_name = attributes.iter().filter(|it| it.path().is_ident(name));
    let parts = of_name.filter_map(|it| {
        it.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .ok()
    });
    parts.flatten().collect()
}

/// Returns the pattern of an attribute, such as `regex(pattern = "…")`.
fn pattern(attribute: &Meta) -> Option<String> {
    let value = match attribute {
        Meta::NameValue(attribute) => &attribute.value,
        Meta::List(list) => &list.parse_args::<syn::MetaNameValue>().ok()?.value,
        Meta::Path(_) => return None,
    };
    match value {
        Expr::Lit(value) => match &value.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(attributes: &str) -> Schema {
        let text = format!("struct A {{ {attributes} text: String }}");
        let item: syn::ItemStruct = syn::parse_str(&text).expect("a struct");
        Schema::of(item.fields.iter().next().expect("a field"))
    }

    #[test]
    fn the_keywords_are_those_of_the_attributes() {
        for (attributes, keyword, admits_words) in [
            ("", Some(Keyword::Length), true),
            ("#[schemars(length(min = 1))]", Some(Keyword::Pattern), true),
            (
                "#[validate ( length ( max = 1 ) )]",
                Some(Keyword::Pattern),
                true,
            ),
            (
                "#[schemars(description = \"a length(1)\")]",
                Some(Keyword::Length),
                true,
            ),
            (
                "#[schemars(regex(pattern = \"a\"))]",
                Some(Keyword::Length),
                false,
            ),
            (
                "#[schemars(regex(pattern = r\"^[^<>]*$\"))]",
                Some(Keyword::Length),
                true,
            ),
            (
                "#[schemars(length(max = 9), regex(pattern = \"^[^<>]*$\"))]",
                None,
                true,
            ),
            (
                "#[schemars(extend(\"enum\" = [\"a\"]))]",
                Some(Keyword::Length),
                false,
            ),
            (
                "#[schemars(with = \"Other\")]",
                Some(Keyword::Length),
                false,
            ),
        ] {
            let schema = schema(attributes);
            let found = (schema.free_keyword(), schema.admits_words);
            assert_eq!(found, (keyword, admits_words), "{attributes}");
        }
    }
}
