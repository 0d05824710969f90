//! Interpolation: before Vector reads a configuration, it replaces parts of its text with environment variables and
//! secrets.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Start of a reference to a secret.
pub const SECRET: &str = "SECRET[";

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
}
