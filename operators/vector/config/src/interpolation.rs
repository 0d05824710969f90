//! Interpolation: before Vector reads a configuration, it replaces parts of its text with environment variables and
//! secrets.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::vector_version::VectorVersion;

/// Start of a reference to a secret.
pub const SECRET: &str = "SECRET[";

/// Pattern of variables that Vector replaces in the text of a configuration; `$$` is a literal `$`.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    let name = "[[:word:].]+";
    let pattern = format!(
        r"\$\$|\$(?P<plain>{name})|\$\{{(?P<braced>{name})(?:(?P<operator>:?[-?])(?P<word>[^}}]*))?\}}"
    );
    Regex::new(&pattern).expect("the pattern is valid")
});

/// Pattern of references to secrets that Vector replaces. The names of backends have dashes from 0.58 on.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"SECRET\[([[:word:]\-]+)\.[[:word:].\-/]+\]").expect("the pattern is valid")
});

/// Replaces the variables in the text of a configuration as Vector does. `value` returns the value of a variable.
/// Returns all errors.
pub fn interpolate(
    text: &str,
    value: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<String>> {
    let mut problems = Vec::new();
    let replaced = VARIABLE.replace_all(text, |found: &Captures<'_>| {
        let part = |name| found.name(name).map(|part| part.as_str());
        let Some(name) = part("plain").or_else(|| part("braced")) else {
            return "$".to_owned();
        };
        let value = value(name);
        let value = match value {
            Some(value) if value.contains(['\n', '\r']) => {
                problems.push(format!(
                    "the environment variable {name} contains a line break; Vector uses only variables of one line"
                ));
                None
            }
            value => value,
        };
        let operator = part("operator").unwrap_or_default();
        let word = part("word").unwrap_or_default();
        // With a colon, an empty variable counts as missing.
        let value = value.filter(|value| !operator.starts_with(':') || !value.is_empty());
        match value {
            Some(value) => value,
            None if operator.ends_with('-') => word.to_owned(),
            None => {
                let reason = if word.is_empty() {
                    String::new()
                } else {
                    format!(" ({word})")
                };
                problems.push(format!(
                    "the environment variable {name} is not set{reason}; set it, or write $$ for a literal $"
                ));
                String::new()
            }
        }
    });
    let replaced = replaced.into_owned();
    if problems.is_empty() {
        Ok(replaced)
    } else {
        Err(problems)
    }
}

/// Returns true if a version of Vector replaces a part of a text with a secret.
pub(crate) fn has_secret(text: &str, version: VectorVersion) -> bool {
    secret_backends(text, version).next().is_some()
}

/// Returns the names of the backends of the secrets in a text that a version of Vector replaces.
pub(crate) fn secret_backends(text: &str, version: VectorVersion) -> impl Iterator<Item = &str> {
    let references = REFERENCE.captures_iter(text);
    let names = references.filter_map(|found| Some(found.get(1)?.as_str()));
    names.filter(move |name| version >= VectorVersion::V0_58 || !name.contains('-'))
}

/// Tells whether Vector replaces environment variables in the configuration that is validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// Variables stay as they are written, as in Vector since 0.57.
    #[default]
    Off,
    /// Vector is started with `--dangerously-allow-env-var-interpolation`.
    On,
}

impl Interpolation {
    /// Returns true if Vector replaces a part of a text with a variable or a secret before it reads the text, so that
    /// the final text is unknown.
    #[must_use]
    pub fn is_replaced(self, text: &str) -> bool {
        let mut variables = VARIABLE.find_iter(text).filter(|_| self == Self::On);
        variables.any(|found| found.as_str() != "$$") || has_secret(text, VectorVersion::DEFAULT)
    }

    /// Removes the variables from a text: the default or the message of one may have any characters.
    pub(crate) fn without_variables(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::On => VARIABLE.replace_all(text, ""),
            Self::Off => text.into(),
        }
    }
}

/// Returns the first variable in braces in a text, such as `${NAME}`. In braces, nothing else is likely to be meant.
pub(crate) fn variable_in_braces(text: &str) -> Option<&str> {
    // Few texts have one, and a search for captures is expensive.
    if !text.contains("${") {
        return None;
    }
    let mut variables = VARIABLE.captures_iter(text);
    let found = variables.find(|found| found.name("braced").is_some())?;
    found.get(0).map(|whole| whole.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_in_vector() {
        let value = |name: &str| match name {
            "A" => Some("dogs".to_owned()),
            "A.B" => Some("turtles".to_owned()),
            "EMPTY" => Some(String::new()),
            "LINES" => Some("a\nb".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("$A ${A} x${A}y $A=b", "dogs dogs xdogsy dogs=b"),
            ("$$A $ x ${A ${} $$$$", "$A $ x ${A ${} $$"),
            ("$A.B", "turtles"),
            (
                "${A:-cats} ${A-cats} ${A:?no} ${A?no}",
                "dogs dogs dogs dogs",
            ),
            ("${NO:-a b} ${NO-}", "a b "),
            ("${EMPTY:-a} ${EMPTY-a}|${EMPTY?no}$EMPTY", "a |"),
        ] {
            assert_eq!(interpolate(text, &value), Ok(expected.to_owned()), "{text}");
        }
        for (text, part) in [
            ("$NO", "variable NO is not set;"),
            ("$Ab", "variable Ab is not set;"),
            ("${NO:?set it}", "variable NO is not set (set it);"),
            ("${EMPTY:?}", "variable EMPTY is not set;"),
            ("$LINES", "variable LINES contains a line break"),
        ] {
            let problems = interpolate(text, &value).expect_err("an error");
            assert!(problems[0].contains(part), "{problems:?}");
        }
    }

    #[test]
    fn a_text_is_replaced_by_variables_and_secrets_and_not_by_dollars() {
        for text in [
            "$A",
            "a${A}",
            "${A:-b}",
            "${A?b}",
            "$$$A",
            "SECRET[a.b/c-d]",
        ] {
            assert!(Interpolation::On.is_replaced(text), "{text}");
            let is_secret = text.contains(SECRET);
            assert_eq!(Interpolation::Off.is_replaced(text), is_secret, "{text}");
        }
        for text in [
            "a",
            "$$A",
            "$$$$",
            "$",
            "${{ app }}",
            "$/",
            "SECRET[",
            "SECRET[a]",
            "SECRET[a.]",
            "SECRET[a.b",
            "secret[a.b]",
        ] {
            assert!(!Interpolation::On.is_replaced(text), "{text}");
        }
        let text = "a${A:?b?}c$D#";
        assert_eq!(Interpolation::On.without_variables(text), "ac#");
        assert_eq!(Interpolation::Off.without_variables(text), text);
        assert_eq!(
            variable_in_braces("$a $$ ${{ a }} ${B:-c} ${D}"),
            Some("${B:-c}")
        );
        assert_eq!(variable_in_braces("$1 ${} $$${A"), None);
    }
}
