//! Faster lookup of `self` and `oldSelf`.

use ::cel::common::ast::{Expr, IdedExpr, operators};

use crate::cel::ast::{boolean, call, each, replace};

/// Rewrites `self.a` so that the `cel` crate does not check whether `self` is a package and `self.a` a
/// qualified variable. The crate makes this check, with newly allocated strings, for each identifier from which
/// a field is selected, and for no other expression.
pub(crate) fn make_plain(expression: &mut IdedExpr) {
    each(expression, &mut |node| {
        if let Expr::Select(select) = &mut node.expr
            && matches!(&select.operand.expr, Expr::Ident(name) if name == "self" || name == "oldSelf")
        {
            make_no_name(&mut select.operand);
        }
    });
}

/// Rewrites `e` to `true ? e : e`.
fn make_no_name(expression: &mut IdedExpr) {
    replace(expression, |name| {
        let certain = IdedExpr {
            id: name.id,
            expr: boolean(true),
        };
        call(operators::CONDITIONAL, vec![certain, name.clone(), name])
    });
}
