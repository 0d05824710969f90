//! Forms of expressions that the `cel` crate evaluates without allocations.

use ::cel::common::ast::{Expr, IdedExpr, operators};

use crate::cel::ast::{boolean, call, each, replace};

/// Rewrites an expression to the fast form.
pub(crate) fn rewrite(expression: &mut IdedExpr) {
    each(expression, &mut |node| match &mut node.expr {
        Expr::Select(select) if is_variable(&select.operand) => {
            make_no_name(&mut select.operand);
        }
        Expr::Call(not) if not.func_name == operators::LOGICAL_NOT && not.args.len() == 1 => {
            make_condition(node);
        }
        _ => {}
    });
}

fn is_variable(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == "self" || name == "oldSelf")
}

/// Rewrites the `e` of `e.a` to `true ? e : e`, so that the `cel` crate does not check whether `e` is a package and `e.a` a
/// qualified variable. The crate makes this check for each identifier from which a field is selected, and for no other
/// expression.
fn make_no_name(expression: &mut IdedExpr) {
    replace(expression, |name| {
        let certain = part(&name, boolean(true));
        call(operators::CONDITIONAL, vec![certain, name.clone(), name])
    });
}

/// Rewrites `!e` to `e ? false : true`: of a negation, the crate makes the error for a wrong type before it looks at the type.
fn make_condition(expression: &mut IdedExpr) {
    replace(expression, |mut not| {
        let (no, yes) = (part(&not, boolean(false)), part(&not, boolean(true)));
        let operand = match &mut not.expr {
            Expr::Call(call) => call.args.pop(),
            _ => None,
        };
        call(
            operators::CONDITIONAL,
            vec![operand.unwrap_or_default(), no, yes],
        )
    });
}

/// Returns a new part of an expression.
fn part(of: &IdedExpr, expr: Expr) -> IdedExpr {
    IdedExpr { id: of.id, expr }
}
