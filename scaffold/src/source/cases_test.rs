//! Calls in the test of the cases.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Stmt};

use crate::source::Source;

/// Method that compares the cases.
const METHOD: &str = "are_as_expected_everywhere";

/// Call that compares the cases.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Start of its statement.
    pub(crate) statement: usize,
    pub(crate) cases: Cases,
}

/// Cases that are compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cases {
    /// Variable.
    Variable(String),
    /// Another expression, by its end.
    Expression(usize),
}

/// Returns the calls that compare the cases.
pub(crate) fn comparisons(source: &Source<'_>) -> Vec<Comparison> {
    let mut calls = Calls {
        source,
        statement: None,
        found: Vec::new(),
    };
    calls.visit_file(&source.file);
    calls.found
}

struct Calls<'a> {
    source: &'a Source<'a>,
    /// Start of the innermost statement.
    statement: Option<usize>,
    found: Vec<Comparison>,
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let outer = self.statement;
        self.statement = Some(self.source.range(statement.span()).start);
        visit::visit_stmt(self, statement);
        self.statement = outer;
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        let Some(statement) = self.statement.filter(|_| call.method == METHOD) else {
            return;
        };
        let variable = match &*call.receiver {
            Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let cases = variable.map_or_else(
            || Cases::Expression(self.source.range(call.receiver.span()).end),
            |name| Cases::Variable(name.to_string()),
        );
        self.found.push(Comparison { statement, cases });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_found_with_their_statement() {
        let text = "// cases.are_as_expected_everywhere()\nasync fn a() {\n    let x = 1;\n    \
                    if x > 0 {\n        all\n            .are_as_expected_everywhere()\n            .await;\n    }\n    \
                    Cases::read({ f(); \"a\" }).are_as_expected_everywhere().await;\n}\n";
        let source = Source::parse(text).expect("Rust");
        let found = comparisons(&source);
        let [variable, expression] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(text[variable.statement..].starts_with("all\n"));
        assert_eq!(variable.cases, Cases::Variable("all".to_owned()));
        assert!(text[expression.statement..].starts_with("Cases::read"));
        let Cases::Expression(end) = expression.cases else {
            panic!("{expression:?}");
        };
        assert!(text[end..].starts_with(".are_as_expected_everywhere().await;"));
    }
}
