//! Positions in the Rust files of an author. A file is never printed from its syntax tree: its text is edited at positions of
//! the tree.

pub(crate) mod cases_test;
pub(crate) mod imports;
pub(crate) mod modules;
pub(crate) mod registration;
pub(crate) mod rule_ids;
pub(crate) mod rules_file;
pub(crate) mod spec;

use std::ops::Range;

use proc_macro2::{Span, TokenStream};
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, File};

use crate::encoding::split_mark;

/// Rust file: its text and its syntax tree.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) file: File,
    /// Start of the part of the text that the positions of syn belong to: it drops a byte order mark and a shebang.
    pub(crate) start: usize,
}

impl<'a> Source<'a> {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// The text is not Rust.
    pub(crate) fn parse(text: &'a str) -> syn::Result<Self> {
        let file = syn::parse_file(text)?;
        let start = split_mark(text).0.len() + file.shebang.as_ref().map_or(0, String::len);
        Ok(Self { text, file, start })
    }

    /// Returns the part of the text that a span covers.
    pub(crate) fn range(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        let (start, end) = (self.start + range.start, self.start + range.end);
        // A comment at the end of a line has the first half of the line break.
        let has_half = self.text[start..end].ends_with('\r') && self.text[end..].starts_with('\n');
        start..end - usize::from(has_half)
    }

    /// Returns true if a statement or an expression exists in some builds only. The attributes of a statement may be those of
    /// the first expression in it, so that all of them are read where the code begins.
    pub(crate) fn is_conditional_code(&self, span: Span) -> bool {
        let code = &self.text[self.range(span)];
        let parser = |input: ParseStream<'_>| {
            let attributes = Attribute::parse_outer(input)?;
            input.parse::<TokenStream>()?;
            Ok(attributes)
        };
        code.starts_with('#')
            && parser
                .parse_str(code)
                .is_ok_and(|attributes| is_conditional(&attributes))
    }
}

/// Returns true if code exists in some builds only.
pub(crate) fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("cfg"))
}

#[cfg(test)]
mod tests {
    use syn::spanned::Spanned;

    use super::*;

    #[test]
    fn positions_are_those_of_the_text() {
        for before in ["", "\u{feff}", "#!/usr/bin/x\n", "\u{feff}#!/usr/bin/x\r\n"] {
            let text = format!("{before}//! Ä.\r\n\r\nuse a::b;\r\n");
            let source = Source::parse(&text).expect("Rust");
            let item = source.file.items[0].span();
            assert_eq!(&text[source.range(item)], "use a::b;", "{text:?}");
        }
        assert!(Source::parse("fn (").is_err());
    }
}
