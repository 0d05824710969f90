//! Templates and their literal prefixes.

use crate::forms;

/// A template that refers to fields of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template<'a> {
    text: &'a str,
    /// The first field.
    field: &'a str,
}

/// The reason why a template cannot be confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unconfined {
    /// No literal text comes first.
    NoPrefix { field: String },
    /// The literal text is `/`.
    RootPrefix { field: String },
    /// A URI whose host is not literal.
    NoHost,
    /// A URI with an encoded or foreign separator in its literal text.
    EncodedSeparator,
    /// A URI with a query or a fragment.
    QueryOrFragment,
    /// A path whose literal text names no directory below the root.
    NoDirectory { field: String },
    /// A base directory that is not absolute.
    RelativeBase,
    /// A literal path outside the base directory.
    OutsideBase,
}

impl<'a> Template<'a> {
    /// Reads a template. Returns none if it is static, which needs no confinement, or cannot be parsed, which is
    /// another error.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = forms::fields_of_template(text)?;
        let field = fields.first()?;
        Some(Self { text, field })
    }

    /// The first field that the template refers to.
    pub(super) fn field(&self) -> String {
        self.field.to_owned()
    }

    /// The text before the first field and the first time format.
    ///
    /// A `{{` ends it even where no field follows, and a `%` even where it is written as `%%`.
    pub(super) fn literal_prefix(&self) -> &'a str {
        let ends = [self.text.find("{{"), self.text.find('%')];
        let end = ends.into_iter().flatten().min();
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// The text of the whole template.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the reason why Vector cannot confine the template, if there is one.
    pub(super) fn unconfined(&self) -> Option<Unconfined> {
        match self.literal_prefix() {
            "" => Some(Unconfined::NoPrefix {
                field: self.field(),
            }),
            "/" => Some(Unconfined::RootPrefix {
                field: self.field(),
            }),
            prefix if super::uri::is_http(prefix) => super::uri::unconfined(self.text, prefix),
            _ => None,
        }
    }
}

/// Returns true if Vector replaces a part of a text by a variable or a secret before it reads it, so that the text
/// is not known here.
pub(super) fn is_replaced(text: &str) -> bool {
    text.contains('$') || text.contains(crate::tenants::SECRET)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Option<&str> {
        Template::read(text).map(|template| template.literal_prefix())
    }

    #[test]
    fn the_literal_prefix_ends_at_a_field_or_a_time() {
        assert_eq!(prefix("logs-{{ app }}"), Some("logs-"));
        assert_eq!(prefix("logs-%Y-{{ app }}"), Some("logs-"));
        assert_eq!(prefix("%Y-{{ app }}"), Some(""));
        assert_eq!(prefix("100%%-{{ app }}"), Some("100"));
        assert_eq!(prefix("{{}}{{ app }}"), Some(""));
        assert_eq!(prefix("a{ {{ app }}"), Some("a{ "));
        assert_eq!(prefix("\\{{ app }}"), Some("\\"));
        assert_eq!(prefix(" {{ app }}"), Some(" "));
        assert_eq!(prefix("é{{ app }}"), Some("é"));
    }

    #[test]
    fn static_texts_and_texts_that_are_no_templates_have_none() {
        for text in [
            "",
            "logs",
            "%Y-%m",
            "{{}}",
            "{{ app",
            "{{{ app }}}",
            "{{ a..b }}",
            "%E{{ app }}",
        ] {
            assert_eq!(prefix(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_field_is_named_as_it_is_written() {
        let template = Template::read("%Y{{  .a.b }}{{ c }}").expect("a template");
        assert_eq!(template.field(), ".a.b");
    }
}
