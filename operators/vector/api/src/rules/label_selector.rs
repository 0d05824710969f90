//! Label selectors of the sources of logs. Vector passes them to the API server, which rejects an invalid one, so that
//! the source receives nothing.
//!
//! Syntax: <https://pkg.go.dev/k8s.io/apimachinery/pkg/labels#Parse>

use lockstep_shared_validation::{
    Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity, is_label_value,
    is_qualified_name,
};
use serde_json::Value;

use crate::rules::cached_validation::CachedValidation;
use crate::types::pipeline::Pipeline;

const OPTIONS: [&str; 2] = ["extra_label_selector", "extra_namespace_label_selector"];

const EXPECTED: &str = "must be a label selector, such as `app=web,tier in (a, b),!legacy`";

/// Returns the rule of label selectors.
pub(crate) fn rule<K: Pipeline>() -> Rule<K> {
    Rule {
        id: "label-selector",
        description: "The label selectors of `kubernetes_logs` can be parsed by the API server.",
        severity: Severity::Error,
        reference: "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
        fields: &["spec.sources"],
        validate,
    }
}

fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let interpolation = CachedValidation::of(context).interpolation;
    for (id, source) in context.object.spec().sources.iter().flatten() {
        if source["type"] != "kubernetes_logs" {
            continue;
        }
        for option in OPTIONS {
            // The text that Vector reads in place of a variable or a secret is unknown.
            if let Some(selector) = source.get(option).and_then(Value::as_str)
                && !interpolation.is_replaced(selector)
                && !is_label_selector(selector)
            {
                let path = FieldPath::new(format!("spec.sources[{id}].{option}"));
                diagnostics.push(FieldError::invalid(path, selector, EXPECTED));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Comma,
    Open,
    Close,
    Not,
    /// `=` and `==`.
    Equal,
    NotEqual,
    /// `<` and `>`.
    Compare,
}

/// Returns true if the API server can parse a label selector.
fn is_label_selector(text: &str) -> bool {
    let tokens = tokens(text);
    let mut rest = tokens.as_slice();
    if rest.is_empty() {
        return true;
    }
    loop {
        let Some(after) = requirement(rest) else {
            return false;
        };
        match after {
            [] => return true,
            [Token::Comma, next @ ..] => rest = next,
            _ => return false,
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_symbol = |c: char| "=!(),<>".contains(c);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while !rest.is_empty() {
        let (token, length) = match rest.as_bytes() {
            [b'=', b'=', ..] => (Token::Equal, 2),
            [b'!', b'=', ..] => (Token::NotEqual, 2),
            [b'=', ..] => (Token::Equal, 1),
            [b'!', ..] => (Token::Not, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b',', ..] => (Token::Comma, 1),
            [b'<' | b'>', ..] => (Token::Compare, 1),
            _ => {
                let end = rest.find(|c| is_symbol(c) || " \t\r\n".contains(c));
                let end = end.unwrap_or(rest.len());
                (Token::Word(&rest[..end]), end)
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens
}

/// Parses one requirement and returns the tokens after it.
fn requirement<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let (key, rest) = match tokens {
        [Token::Not, Token::Word(key), rest @ ..] => return is_qualified_name(key).then_some(rest),
        [Token::Word(key), rest @ ..] => (key, rest),
        _ => return None,
    };
    if !is_qualified_name(key) {
        return None;
    }
    match rest {
        [] | [Token::Comma, ..] => Some(rest),
        // The value may be empty.
        [Token::Equal | Token::NotEqual] => Some(&[]),
        [Token::Equal | Token::NotEqual, rest @ ..] => match rest {
            [Token::Comma, ..] => Some(rest),
            [Token::Word(value), rest @ ..] => is_label_value(value).then_some(rest),
            _ => None,
        },
        [Token::Compare, Token::Word(value), rest @ ..] => {
            value.parse::<i64>().is_ok().then_some(rest)
        }
        [Token::Word("in" | "notin"), Token::Open, rest @ ..] => values(rest),
        _ => None,
    }
}

/// Parses the values of a list up to the closing bracket, and returns the tokens after it. Between commas, a value may
/// be empty.
fn values<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let end = tokens.iter().position(|token| *token == Token::Close)?;
    let (list, rest) = (&tokens[..end], &tokens[end + 1..]);
    let is_value = |list: &[Token<'_>]| match list {
        [] => true,
        [Token::Word(value)] => is_label_value(value),
        _ => false,
    };
    let mut all = list.split(|token| *token == Token::Comma);
    (!list.is_empty() && all.all(is_value)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_has_the_syntax_of_the_api_server() {
        for selector in [
            "",
            " ",
            "app",
            "!app",
            "! app",
            "app=web",
            "app==web,tier!=a",
            "app = web , example.com/tier in (a, b)",
            "tier notin (a)",
            "tier in (,a)",
            "tier in (a,)",
            "app=",
            "app=,tier",
            "n > 5",
            "n<-5",
            "in in (in)",
        ] {
            assert!(is_label_selector(selector), "{selector}");
        }
        for selector in [
            "!!!",
            "!",
            "=web",
            "app=web,",
            ",app",
            "app web",
            "app=a b",
            "app in a",
            "app in ()",
            "app in (a",
            "app in (a b)",
            "app in (a(b))",
            "n > a",
            "n >",
            "!app=web",
            "a/b/c",
            "-app",
            "app=-a",
            "app===web",
            "app!web",
        ] {
            assert!(!is_label_selector(selector), "{selector}");
        }
    }
}
