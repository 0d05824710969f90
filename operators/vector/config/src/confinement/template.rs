//! Templates and their literal prefixes.

use crate::confinement::unconfined::Unconfined;
use crate::confinement::uri;
use crate::interpolation::Interpolation;
use crate::option_format;
use crate::vector_version::VectorVersion;

/// A template that refers to fields of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template<'a> {
    text: &'a str,
    /// The first field.
    field: &'a str,
}

impl<'a> Template<'a> {
    /// Reads a template. Returns none if it is static, which needs no confinement, or cannot be parsed, which is
    /// another error.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let fields = option_format::fields_of_template(text)?;
        let field = fields.first()?;
        Some(Self { text, field })
    }

    /// Returns the first field that the template refers to.
    pub(crate) fn field(&self) -> String {
        self.field.to_owned()
    }

    /// Returns the text before the first field and the first time format.
    ///
    /// It ends at `{{` even if no field follows, and at `%` even if it is escaped as `%%`.
    pub(crate) fn literal_prefix(&self) -> &'a str {
        let ends = [self.text.find("{{"), self.text.find('%')];
        let end = ends.into_iter().flatten().min();
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// Returns the reason why Vector cannot confine the template, if there is one.
    pub(crate) fn unconfined(
        &self,
        interpolation: Interpolation,
        version: VectorVersion,
    ) -> Option<Unconfined> {
        match self.literal_prefix() {
            "" => Some(Unconfined::NoPrefix {
                field: self.field(),
            }),
            "/" => Some(Unconfined::RootPrefix {
                field: self.field(),
            }),
            prefix if uri::is_http(prefix) => {
                uri::unconfined(self.text, prefix, interpolation, version)
            }
            _ => None,
        }
    }
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
    fn static_texts_and_invalid_templates_have_no_prefix() {
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
