//! Regular expressions with the syntax and semantics of RE2, based on Rust's `regex`.
//!
//! The API server uses Go's regular expressions. The two dialects differ: classes such as `\d` are ASCII in RE2
//! and Unicode in `regex`, `regex` does not have `\Q…\E`, and RE2 has no nested classes or set operations.
//! Expressions are therefore translated: <https://github.com/google/re2/wiki/Syntax>.

use regex::{Regex, RegexBuilder};

/// Maximum repeat count in Go: <https://pkg.go.dev/regexp/syntax>.
const MAX_REPEAT: u32 = 1000;

/// Maximum size of a compiled expression, as protection against malicious expressions.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// Maximum size of a compiled expression of a schema that counts as a large one, such as 256 characters of any class of Unicode.
const MAX_LARGE_BYTES: usize = 12 << 20;

/// Compiles an expression in RE2 syntax.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translation::of(pattern)?;
    build(&translated, MAX_COMPILED_BYTES).map_err(|error| described(pattern, &error))
}

/// Compiles an expression, which may be a large one. Returns whether it is.
pub(crate) fn compile_pattern(pattern: &str) -> Result<(Regex, bool), String> {
    let translated = Translation::of(pattern)?;
    match build(&translated, MAX_COMPILED_BYTES) {
        Err(regex::Error::CompiledTooBig(_)) => {
            build(&translated, MAX_LARGE_BYTES).map(|large| (large, true))
        }
        small => small.map(|small| (small, false)),
    }
    .map_err(|error| described(pattern, &error))
}

fn build(translated: &str, most_bytes: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated).size_limit(most_bytes).build()
}

fn described(pattern: &str, error: &regex::Error) -> String {
    format!("`{pattern}`: {}", last_line(&error.to_string()))
}

fn last_line(error: &str) -> &str {
    error.lines().last().unwrap_or(error)
}

/// Unicode version of the tables in the Go release with which the API server is built.
const UNICODE_AGE: &str = "15.0";

struct Translation<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Translation<'a> {
    fn of(pattern: &'a str) -> Result<String, String> {
        let mut translation = Self {
            rest: pattern,
            out: String::with_capacity(pattern.len() + 16),
        };
        translation
            .run()
            .map_err(|problem| format!("`{pattern}`: {problem}"))?;
        Ok(translation.out)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escape(Position::Expression)?,
                '[' => self.class()?,
                '{' => self.repetition()?,
                '(' if self.rest.starts_with('?') => self.group()?,
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    fn escape(&mut self, within: Position) -> Result<(), String> {
        let c = self
            .next()
            .ok_or("trailing backslash at end of expression")?;
        match (c, within) {
            ('d', _) => self.out.push_str(within.class("0-9")),
            ('D', _) => self.out.push_str("[^0-9]"),
            ('s', _) => self.out.push_str(within.class("\\t\\n\\f\\r ")),
            ('S', _) => self.out.push_str("[^\\t\\n\\f\\r ]"),
            ('w', _) => self.out.push_str(within.class("0-9A-Za-z_")),
            ('W', _) => self.out.push_str("[^0-9A-Za-z_]"),
            ('b', Position::Expression) => self.out.push_str("(?-u:\\b)"),
            ('B', Position::Expression) => self.out.push_str("(?-u:\\B)"),
            ('Q', Position::Expression) => {
                let (literal, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(literal));
                self.rest = rest;
            }
            ('p' | 'P', _) => self.property(c)?,
            ('A' | 'z', Position::Expression) | ('a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x', _) => {
                self.out.push('\\');
                self.out.push(c);
            }
            ('0'..='7', _) => self.octal(c)?,
            (c, _) if c.is_ascii() && !c.is_ascii_alphanumeric() => {
                self.out
                    .push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
            }
            _ => return Err(format!("invalid escape sequence `\\{c}`")),
        }
        Ok(())
    }

    /// Translates `\pL`, `\p{Greek}`, `\P{^Greek}`, restricted to the characters in Go's Unicode tables.
    fn property(&mut self, sign: char) -> Result<(), String> {
        let name = match self.rest.strip_prefix('{') {
            Some(rest) => {
                let (name, behind) = rest
                    .split_once('}')
                    .ok_or("invalid character class range")?;
                self.rest = behind;
                name.to_owned()
            }
            None => self
                .next()
                .ok_or("invalid character class range")?
                .to_string(),
        };
        let (inverted, name) = match name.strip_prefix('^') {
            Some(name) => (true, name),
            None => (false, name.as_str()),
        };
        let caret = if (sign == 'P') == inverted { "" } else { "^" };
        self.out.push_str(&format!(
            "[{caret}[\\p{{{name}}}&&\\p{{age:{UNICODE_AGE}}}]]"
        ));
        Ok(())
    }

    /// Translates `\0` and `\012`. A lone `\1` would be a backreference, which RE2 does not have.
    fn octal(&mut self, first: char) -> Result<(), String> {
        let more = self
            .rest
            .chars()
            .take(2)
            .take_while(|c| ('0'..='7').contains(c));
        let digits: String = std::iter::once(first).chain(more).collect();
        if first != '0' && digits.len() == 1 {
            return Err(format!("invalid escape sequence `\\{first}`"));
        }
        self.rest = &self.rest[digits.len() - 1..];
        let code = u32::from_str_radix(&digits, 8).map_err(|error| error.to_string())?;
        self.out.push_str(&format!("\\x{{{code:x}}}"));
        Ok(())
    }

    /// Translates a class. In `regex`, unlike in RE2, `[`, `&&`, `--` and `~~` have a special meaning in a
    /// class.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.out.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            let c = self.next().ok_or("missing closing ]")?;
            match c {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").unwrap_or_default() + 2;
                    self.out.push('[');
                    self.out.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
                '\\' => self.escape(Position::Class)?,
                '[' | ']' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                other => self.out.push(other),
            }
            first = false;
        }
    }

    /// Translates a repetition. A brace that does not start a valid repetition is a literal.
    fn repetition(&mut self) -> Result<(), String> {
        let Some((inside, rest)) = self.rest.split_once('}') else {
            self.out.push_str("\\{");
            return Ok(());
        };
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
        };
        let (Some(least), true) = (number(least), most.is_empty() || number(most).is_some()) else {
            self.out.push_str("\\{");
            return Ok(());
        };
        if least > MAX_REPEAT || number(most).is_some_and(|most| most > MAX_REPEAT) {
            return Err(format!("invalid repeat count `{{{inside}}}`"));
        }
        self.out.push_str(&format!("{{{inside}}}"));
        self.rest = rest;
        Ok(())
    }

    /// Translates a group with flags or a name. `regex` has flags that RE2 does not have; these are errors.
    fn group(&mut self) -> Result<(), String> {
        let head: &str = self.rest.split([':', ')', '<']).next().unwrap_or_default();
        if head.chars().any(|c| matches!(c, 'x' | 'u' | 'R')) {
            return Err(format!("invalid or unsupported syntax `({head}`"));
        }
        self.out.push('(');
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Position {
    Expression,
    Class,
}

impl Position {
    fn class(self, members: &'static str) -> &'static str {
        match (self, members) {
            (Self::Class, members) => members,
            (Self::Expression, "0-9") => "[0-9]",
            (Self::Expression, "0-9A-Za-z_") => "[0-9A-Za-z_]",
            (Self::Expression, _) => "[\\t\\n\\f\\r ]",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).expect(pattern).is_match(text)
    }

    #[test]
    fn perl_classes_are_ascii() {
        assert!(matches(r"^\d\w\s$", "1a "));
        assert!(!matches(r"^\d$", "١"));
        assert!(!matches(r"^\w$", "é"));
        assert!(!matches(r"^\s$", "\u{b}"));
        assert!(matches(r"^[\d\s]+$", "1 "));
        assert!(matches(r"^[^\S]$", " "));
        assert!(matches(r"\bé\b", "aéa"));
        assert!(matches(r"^\PL\pL[\p{Greek}\P{^L}]$", "1éα"));
        // A letter that was added in Unicode 16.
        assert!(!matches(r"^\pL$", "\u{10d60}"));
    }

    #[test]
    fn syntax_that_only_one_dialect_has_is_translated() {
        assert!(matches(r"^\Qa.b\E$", "a.b"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
        assert!(matches(r"^[[:alpha:]]+$", "ab"));
        assert!(matches(r"^[]a[&&~~]+$", "]a[&~"));
        assert!(matches(r"^a{,2}{$", "a{,2}{"));
        assert!(matches(r"^\101\x41\x{41}$", "AAA"));
        assert!(matches(r"^\<\_$", "<_"));
        assert!(matches(r"(?i)^(?P<x>É)$", "é"));
        let (letters, is_large) = compile_pattern(r"^\p{L}{1,256}$").expect("it compiles");
        assert!(is_large && letters.is_match(&"é".repeat(256)));
        assert!(!letters.is_match(&"é".repeat(257)) && !letters.is_match(""));
        assert!(compile_pattern(r"^[\p{L}\p{N}\p{P}]{1,256}$").is_ok());
        assert!(compile_pattern(r"^\p{L}{1,700}$").is_err());
        assert!(matches(r"\Aa\z", "a"));
    }

    #[test]
    fn expressions_that_go_rejects_are_rejected() {
        for pattern in [
            r"a\", r"\1", r"\Z", r"[a", r"a{1001}", r"(?x)a", r"(?=a)", r"a\y",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
