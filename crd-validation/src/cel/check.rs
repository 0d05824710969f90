//! Static checks of expressions: names must be known, patterns must compile, and the expression must be small
//! enough for a recursive walk.

use ::cel::common::ast::{Expr, IdedExpr, LiteralValue};

use crate::cel::ast;
use crate::cel::library;
use crate::cel::library::names::{has_function, has_name};
use crate::schema::Schema;

/// Maximum length of an expression. The API server allows 100,000 characters, but real rules are much shorter.
/// The limit exists because a recursive walk can be as deep as the text is long.
const MAX_BYTES: usize = 10_000;
/// Maximum nesting of brackets and operations, as in cel-go.
const MAX_DEPTH: usize = 250;

/// Names that an expression may use.
pub(super) struct Scope<'a> {
    pub(super) schema: &'a Schema,
    pub(super) is_resource: bool,
    pub(super) optional_old_self: bool,
}

/// Rejects a text that is too long or too deeply nested to be walked.
pub(super) fn size(source: &str) -> Result<(), String> {
    if source.len() > MAX_BYTES {
        return Err(format!("the expression is longer than {MAX_BYTES} bytes"));
    }
    let mut depth = 0_usize;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(format!(
                "the expression is nested deeper than {MAX_DEPTH} levels"
            ));
        }
    }
    Ok(())
}

/// Checks all names in an expression and returns its depth.
pub(super) fn expression(expression: &IdedExpr, scope: &Scope<'_>) -> Result<usize, String> {
    let mut walk = Walk {
        scope,
        variables: vec!["self", "oldSelf"],
        depth: 0,
        deepest: 0,
    };
    walk.node(expression)?;
    Ok(walk.deepest)
}

struct Walk<'a> {
    scope: &'a Scope<'a>,
    variables: Vec<&'a str>,
    depth: usize,
    deepest: usize,
}

impl<'a> Walk<'a> {
    fn node(&mut self, expression: &'a IdedExpr) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!(
                "the expression is nested deeper than {MAX_DEPTH} levels"
            ));
        }
        self.deepest = self.deepest.max(self.depth);
        self.parts(expression)?;
        self.depth -= 1;
        Ok(())
    }

    fn parts(&mut self, expression: &'a IdedExpr) -> Result<(), String> {
        match &expression.expr {
            Expr::Ident(name) => {
                if self.variables.contains(&name.as_str()) || has_name(name) {
                    Ok(())
                } else {
                    Err(format!("undeclared reference to `{name}`"))
                }
            }
            Expr::Call(call) => {
                if !has_function(&call.func_name) {
                    return Err(format!("function `{}` is not supported", call.func_name));
                }
                if matches!(call.func_name.as_str(), "matches" | "find" | "findAll") {
                    let pattern = if call.target.is_some() {
                        call.args.first()
                    } else {
                        call.args.get(1)
                    };
                    if let Some(IdedExpr {
                        expr: Expr::Literal(LiteralValue::String(pattern)),
                        ..
                    }) = pattern
                    {
                        library::compile_regex(pattern.inner())?;
                    }
                }
                self.children(expression)
            }
            Expr::Comprehension(comprehension) => {
                self.node(&comprehension.iter_range)?;
                self.node(&comprehension.accu_init)?;
                let known = self.variables.len();
                self.variables.push(&comprehension.accu_var);
                self.variables.push(&comprehension.iter_var);
                self.node(&comprehension.loop_cond)?;
                self.node(&comprehension.loop_step)?;
                self.node(&comprehension.result)?;
                self.variables.truncate(known);
                Ok(())
            }
            Expr::Select(_) => {
                self.children(expression)?;
                self.field(expression)
            }
            Expr::Struct(_) => Err("messages are not supported".to_owned()),
            _ => self.children(expression),
        }
    }

    fn children(&mut self, expression: &'a IdedExpr) -> Result<(), String> {
        let mut children = ast::children(expression).into_iter();
        children.try_for_each(|child| self.node(child))
    }

    /// Checks a field against the schema, if the expression accesses it by a plain path.
    fn field(&self, expression: &IdedExpr) -> Result<(), String> {
        let Some((root, names)) = path(expression) else {
            return Ok(());
        };
        let shadowed = self
            .variables
            .iter()
            .filter(|variable| **variable == root)
            .count()
            > 1;
        let typed = root == "self" || (root == "oldSelf" && !self.scope.optional_old_self);
        if shadowed || !typed {
            return Ok(());
        }
        let mut node = self.scope.schema;
        for (depth, name) in names.iter().enumerate() {
            let own = (depth == 0 && self.scope.is_resource) || node.embedded;
            if own && matches!(*name, "apiVersion" | "kind" | "metadata") {
                return Ok(());
            }
            let mut fields = node.properties.schemas();
            let known = fields.find(|field| field.is_called(name));
            match known.or_else(|| node.additional()) {
                Some(child) => node = child,
                None if node.int_or_string => return Ok(()),
                None => return Err(format!("undefined field `{name}`")),
            }
        }
        Ok(())
    }
}

/// Returns the variable and the fields of `self.a.b`.
fn path(expression: &IdedExpr) -> Option<(&str, Vec<&str>)> {
    let mut names = Vec::new();
    let mut node = expression;
    loop {
        match &node.expr {
            Expr::Ident(root) => {
                names.reverse();
                return Some((root, names));
            }
            Expr::Select(select) => {
                names.push(select.field.as_str());
                node = &select.operand;
            }
            _ => return None,
        }
    }
}
