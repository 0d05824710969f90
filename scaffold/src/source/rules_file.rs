//! Positions in a file with rules.

use proc_macro2::TokenTree;
use syn::spanned::Spanned;
use syn::{Expr, Item, ItemFn, Macro, Pat, Stmt};

use crate::edits::{Edits, after_comment};
use crate::source::imports::Imports;
use crate::source::{Source, is_conditional};

/// Positions in a file with rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RulesFile {
    /// End of the list of rules, before its closing bracket.
    end_of_rules: usize,
    /// If true, a comma must come before another rule.
    needs_comma: bool,
    /// Position of another function: before the tests; none if the file has no tests after the rules.
    tests: Option<usize>,
}

/// Returns the positions; none if the file has no function `rules` that returns `vec![…]` in every build.
pub(crate) fn rules_file(source: &Source<'_>) -> Option<RulesFile> {
    let items = &source.file.items;
    let mut functions = items.iter().filter_map(|item| match item {
        Item::Fn(item) => Some(item),
        _ => None,
    });
    let function: &ItemFn =
        functions.find(|item| item.sig.ident == "rules" && !is_conditional(&item.attrs))?;
    let statements = &function.block.stmts;
    // Another statement returns other rules in some builds.
    if statements
        .iter()
        .any(|it| source.is_conditional_code(it.span()))
    {
        return None;
    }
    let rules = list(statements)?;
    if rules.path.segments.last()?.ident != "vec" {
        return None;
    }
    let last = rules.tokens.clone().into_iter().last();
    let end_of_function = source.range(function.span()).end;
    let tests = items.iter().find_map(|item| match item {
        Item::Mod(item) => {
            let start = source.range(item.span()).start;
            (is_conditional(&item.attrs) && start > end_of_function).then_some(start)
        }
        _ => None,
    });
    // The rules end where the last of them ends: white space before the bracket stays after the new one.
    let end = last.as_ref().map(|last| source.range(last.span()).end);
    let open = source.range(rules.delimiter.span().open()).end;
    Some(RulesFile {
        end_of_rules: end.unwrap_or(open),
        needs_comma: last
            .is_some_and(|last| !matches!(&last, TokenTree::Punct(it) if it.as_char() == ',')),
        tests,
    })
}

/// Returns the macro whose value statements return, also by a variable.
fn list(statements: &[Stmt]) -> Option<&Macro> {
    let (last, before) = statements.split_last()?;
    match last {
        Stmt::Macro(value) => value.semi_token.is_none().then_some(&value.mac),
        Stmt::Expr(Expr::Macro(value), None) => Some(&value.mac),
        Stmt::Expr(Expr::Return(value), _) => match value.expr.as_deref()? {
            Expr::Macro(value) => Some(&value.mac),
            _ => None,
        },
        Stmt::Expr(Expr::Path(variable), None) => {
            let variable = variable.path.get_ident()?;
            before.iter().rev().find_map(|statement| {
                let Stmt::Local(local) = statement else {
                    return None;
                };
                let pattern = match &local.pat {
                    Pat::Type(pattern) => &*pattern.pat,
                    pattern => pattern,
                };
                match (pattern, &*local.init.as_ref()?.expr) {
                    (Pat::Ident(name), Expr::Macro(value)) if name.ident == *variable => {
                        Some(&value.mac)
                    }
                    _ => None,
                }
            })
        }
        _ => None,
    }
}

impl RulesFile {
    /// Adds a rule after the others, and its function before the tests or at the end.
    pub(crate) fn add(&self, text: &str, rule: &str, function: &str, edits: &mut Edits<'_>) {
        // As before, a comma is at the end, or not.
        let rule = if self.needs_comma {
            edits.insert(self.end_of_rules, ",");
            rule.trim_end_matches(',')
        } else {
            rule
        };
        edits.insert(after_comment(text, self.end_of_rules, "//"), rule);
        match self.tests {
            Some(position) => edits.insert(position, format!("{function}\n")),
            None if text.ends_with('\n') => edits.insert(text.len(), format!("\n{function}")),
            None => edits.insert(text.len(), format!("\n\n{function}")),
        }
    }
}

/// Returns true if a file has a function of a name, or imports something of the name.
pub(crate) fn has_function(source: &Source<'_>, name: &str) -> bool {
    let items = &source.file.items;
    let mut functions = items.iter().filter_map(|item| match item {
        Item::Fn(item) => Some(item),
        _ => None,
    });
    functions.any(|item| item.sig.ident == name) || Imports::of_items(items).has_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> Option<String> {
        let source = Source::parse(text).ok()?;
        let file = rules_file(&source)?;
        let mut edits = Edits::of(text);
        file.add(text, "\n        NEW,", "fn new() {}\n", &mut edits);
        Some(edits.apply())
    }

    #[test]
    fn a_rule_is_added_after_the_others() {
        for (before, after) in [
            ("vec![Rule { id: \"]\" }", "]"),
            ("std::vec!(Rule {}", ")"),
            (
                "let all: Vec<Rule<A>> = vec![Rule {}",
                "];\n    check(&all);\n    all",
            ),
            ("return vec![Rule {}", "];"),
        ] {
            let text = format!("fn rules() -> Vec<Rule<A>> {{\n    {before}{after}\n}}\n");
            let expected = format!(
                "fn rules() -> Vec<Rule<A>> {{\n    {before},\n        NEW{after}\n}}\n\nfn new() {{}}\n"
            );
            assert_eq!(added(&text), Some(expected));
        }
        let text = "fn rules() {\n    vec![\n        Rule {}, // a\n        // b\n    ]\n}";
        let expected = "fn rules() {\n    vec![\n        Rule {}, // a\n        NEW,\n        // b\n    ]\n}\n\nfn new() {}\n";
        assert_eq!(added(text).as_deref(), Some(expected));
        let text = "\u{feff}fn rules() {\r\n    vec![]\r\n}\r\n";
        let expected =
            "\u{feff}fn rules() {\r\n    vec![\r\n        NEW,]\r\n}\r\n\r\nfn new() {}\r\n";
        assert_eq!(added(text).as_deref(), Some(expected));
        for other in [
            "fn rules() -> Vec<Rule<A>> {\n    all()\n}\n",
            "fn rules() -> Vec<Rule<A>> {\n    let all = one();\n    all\n}\n",
            "fn rules() {\n    vec![];\n}\n",
            "fn other() {}\n",
            "#[cfg(unix)]\nfn rules() {\n    vec![]\n}\n",
            "fn rules() {\n    #[cfg(unix)]\n    return vec![];\n    vec![]\n}\n",
            "fn rules() {\n    #[cfg(unix)]\n    let all = vec![];\n    all\n}\n",
        ] {
            assert_eq!(added(other), None, "{other}");
        }
    }

    #[test]
    fn of_several_functions_the_one_of_every_build_is_meant() {
        let first = "#[cfg(unix)]\nfn rules() {\n    vec![]\n}\n";
        let second = "#[cfg_attr(unix, inline)]\nfn rules() {\n    vec![";
        let changed = added(&format!("{first}{second}]\n}}\n")).expect("a place");
        assert!(
            changed.starts_with(&format!("{first}{second}\n        NEW")),
            "{changed}"
        );
    }

    #[test]
    fn a_function_is_added_before_the_tests() {
        let rules = "fn rules() {\n    vec![]\n}\n\n";
        let tests = "/// Tests.\n#[cfg(test)]\nmod tests {}\n";
        let expected = |before: &str| {
            let rules = rules.replace("[]", "[\n        NEW,]");
            format!("{before}{rules}fn new() {{}}\n\n{tests}")
        };
        assert_eq!(added(&format!("{rules}{tests}")), Some(expected("")));
        let first = "#[cfg(test)]\nmod first;\n\n";
        assert_eq!(
            added(&format!("{first}{rules}{tests}")),
            Some(expected(first))
        );
    }

    #[test]
    fn a_function_in_use_is_found() {
        let source = Source::parse("use a::check_a;\nfn  check_b () {}\n// fn check_c()\n");
        let source = source.expect("Rust");
        assert!(has_function(&source, "check_a") && has_function(&source, "check_b"));
        assert!(!has_function(&source, "check_c"));
    }
}
