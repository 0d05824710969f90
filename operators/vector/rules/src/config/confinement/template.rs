//! Templates and their literal prefixes.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::config::option_format;
use crate::tenancy::SECRET;

/// A template that refers to fields of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template<'a> {
    text: &'a str,
    /// The first field.
    field: &'a str,
}

/// The reason why a template cannot be confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unconfined {
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
    pub(crate) fn unconfined(&self) -> Option<Unconfined> {
        match self.literal_prefix() {
            "" => Some(Unconfined::NoPrefix {
                field: self.field(),
            }),
            "/" => Some(Unconfined::RootPrefix {
                field: self.field(),
            }),
            prefix if crate::config::confinement::uri::is_http(prefix) => {
                crate::config::confinement::uri::unconfined(self.text, prefix)
            }
            _ => None,
        }
    }
}

/// Pattern of variables that Vector replaces in the text of a configuration; `$$` is a literal `$`.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\$|\$[[:word:].]+|\$\{[[:word:].]+(?::?[-?][^}]*)?\}")
        .expect("the pattern is valid")
});

/// Returns true if Vector replaces a part of a text with a variable or a secret before it reads the text, so that the
/// final text is unknown.
pub(crate) fn is_replaced(text: &str) -> bool {
    let mut variables = VARIABLE.find_iter(text);
    variables.any(|found| found.as_str() != "$$") || text.contains(SECRET)
}

/// Removes the variables from a text: the default or the message of one may have any characters.
pub(crate) fn without_variables(text: &str) -> Cow<'_, str> {
    VARIABLE.replace_all(text, "")
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
    fn a_text_is_replaced_by_variables_and_secrets_and_not_by_dollars() {
        for text in ["$A", "a${A}", "${A:-b}", "${A?b}", "$$$A", "SECRET[a.b]"] {
            assert!(is_replaced(text), "{text}");
        }
        for text in ["a", "$$A", "$$$$", "$", "${{ app }}", "$/"] {
            assert!(!is_replaced(text), "{text}");
        }
        assert_eq!(without_variables("a${A:?b?}c$D#"), "ac#");
    }

    #[test]
    fn the_first_field_is_named_as_it_is_written() {
        let template = Template::read("%Y{{  .a.b }}{{ c }}").expect("a template");
        assert_eq!(template.field(), ".a.b");
    }
}
