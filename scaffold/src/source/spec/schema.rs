//! Attributes of a field for its schema.

use std::ops::RangeInclusive;

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
    /// Allowed numbers of characters.
    pub(crate) length: RangeInclusive<usize>,
    /// Part of the schema that may deny another word in the text, such as "a pattern"; none if there is none.
    pub(crate) restriction: Option<String>,
}

impl Schema {
    /// Returns the schema of a field. Besides those of schemars, it has the attributes of other crates that schemars reads.
    pub(crate) fn of(field: &Field) -> Self {
        let mut schema = Self {
            has_length: false,
            has_pattern: false,
            length: 0..=usize::MAX,
            restriction: None,
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
            Some("length") => {
                self.has_length = true;
                if self.limit(attribute).is_none() {
                    self.restrict("a length that is not written as numbers");
                }
            }
            Some("regex" | "pattern") => {
                self.has_pattern = true;
                if pattern(attribute).is_none_or(|pattern| pattern != WORDS) {
                    self.restrict("a pattern");
                }
            }
            // These may be any schema.
            Some(
                name @ ("email" | "url" | "contains" | "extend" | "schema_with" | "transform"
                | "with"),
            ) => {
                self.restrict(&format!("the attribute `{name}`"));
            }
            _ => {}
        }
    }

    fn restrict(&mut self, part: &str) {
        self.restriction.get_or_insert_with(|| part.to_owned());
    }

    /// Applies bounds of the length; none if they are not literals.
    fn limit(&mut self, attribute: &Meta) -> Option<()> {
        let bounds = attribute.require_list().ok()?;
        let bounds = bounds.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        for bound in bounds.ok()? {
            let Meta::NameValue(bound) = bound else {
                continue;
            };
            let Expr::Lit(value) = &bound.value else {
                return None;
            };
            let Lit::Int(value) = &value.lit else {
                return None;
            };
            let value = value.base10_parse::<usize>().ok()?;
            let (min, max) = (*self.length.start(), *self.length.end());
            self.length = match bound.path.get_ident()?.to_string().as_str() {
                "min" => min.max(value)..=max,
                "max" => min..=max.min(value),
                "equal" => value..=value,
                _ => return None,
            };
        }
        Some(())
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
            let found = (schema.free_keyword(), schema.restriction.is_none());
            assert_eq!(found, (keyword, admits_words), "{attributes}");
        }
    }

    #[test]
    fn the_length_is_that_of_all_attributes() {
        for (attributes, length) in [
            ("", 0..=usize::MAX),
            ("#[schemars(length(min = 1_0, max = 20u64))]", 10..=20),
            (
                "#[schemars(length(max = 9))] #[validate(length(min = 1, max = 12))]",
                1..=9,
            ),
            ("#[garde(length(chars, equal = 3))]", 3..=3),
        ] {
            assert_eq!(schema(attributes).length, length, "{attributes}");
        }
        let named = schema("#[schemars(length(max = MAX))]").restriction;
        assert_eq!(
            named.as_deref(),
            Some("a length that is not written as numbers")
        );
        let email = schema("#[schemars(email, url)]").restriction;
        assert_eq!(email.as_deref(), Some("the attribute `email`"));
    }
}
