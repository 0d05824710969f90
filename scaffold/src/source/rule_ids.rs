//! Ids of rules in a Rust file.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Lit, LitStr};

use crate::source::Source;

/// Returns true if a file has a rule of an id: a struct literal whose field `id` is the id, or a message that ends with it in
/// brackets. They are looked for in the tokens, as rules are in macros and attributes.
pub(crate) fn has_rule(source: &Source<'_>, id: &str) -> bool {
    let tokens = source.text[source.start..].parse::<TokenStream>();
    tokens.is_ok_and(|tokens| contains_rule(tokens, false, id))
}

/// Looks for a rule in tokens, which may be in braces.
fn contains_rule(tokens: TokenStream, is_in_braces: bool, id: &str) -> bool {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let is_punctuation = |at: Option<usize>, mark: char| {
        let token = at.and_then(|at| tokens.get(at));
        matches!(token, Some(TokenTree::Punct(token)) if token.as_char() == mark)
    };
    let is_name = |at: Option<usize>, name: &str| {
        let token = at.and_then(|at| tokens.get(at));
        matches!(token, Some(TokenTree::Ident(token)) if token == name)
    };
    let message_end = format!("[{id}]");
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Group(group) => {
            let is_in_braces = group.delimiter() == Delimiter::Brace;
            contains_rule(group.stream(), is_in_braces, id)
        }
        TokenTree::Literal(literal) => {
            let Lit::Str(text) = Lit::new(literal.clone()) else {
                return false;
            };
            let name = at.checked_sub(2);
            let is_documentation = is_punctuation(at.checked_sub(1), '=') && is_name(name, "doc");
            let begins_field = at == 2 || is_punctuation(at.checked_sub(3), ',');
            let is_id = is_in_braces
                && begins_field
                && is_name(name, "id")
                && is_punctuation(at.checked_sub(1), ':');
            let text = LitStr::value(&text);
            is_id && text == id || !is_documentation && text.ends_with(&message_end)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_rules_and_messages() {
        let has = |text: &str| has_rule(&Source::parse(text).expect("Rust"), "gold");
        for text in [
            "fn rules() { vec![Rule { severity: 1, id: \"gold\" }] }",
            "fn rules() { vec![Rule {\n id /* a */ :\n r#\"gold\"#, b: 1 }] }",
            "const A: Rule = Rule { id: \"gold\" };",
            "\u{feff}struct A { #[x_kube(validation = Rule::new(\"a\").message(\"no [gold]\"))] b: C }",
        ] {
            assert!(has(text), "{text}");
        }
        for text in [
            "// Rule { id: \"gold\" } [gold]\nfn a() {}",
            "/// See [gold]\nfn a() {}",
            "fn a() { log(\"[gold] is dear\"); }",
            "const A: &str = r#\"Rule { id: \"gold\" }\"#;",
            "fn a() { list[gold]; }",
            "fn a() { B { grid: \"gold\" } }",
            "fn a() { Rule { id: \"golden\" } }",
            "fn a() { let id: &str = \"gold\"; }",
        ] {
            assert!(!has(text), "{text}");
        }
    }
}
