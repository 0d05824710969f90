//! Names that are looked up as what they are.

use ::cel::common::ast::{Expr, IdedExpr, operators};

use crate::cel::ast::{call, each, replace, truth};

/// Spares the evaluation of `self.a` the question whether `self` is the name of a package and `self.a`
/// that of a variable in it: the `cel` crate asks it, with texts made for that, of every name that fields
/// are selected from, and of nothing else.
pub(super) fn make_plain(expression: &mut IdedExpr) {
    each(expression, &mut |node| {
        if let Expr::Select(select) = &mut node.expr
            && matches!(&select.operand.expr, Expr::Ident(name) if name == "self" || name == "oldSelf")
        {
            make_no_name(&mut select.operand);
        }
    });
}

/// `e` as `true ? e : e`.
fn make_no_name(expression: &mut IdedExpr) {
    replace(expression, |name| {
        let certain = IdedExpr {
            id: name.id,
            expr: truth(true),
        };
        call(operators::CONDITIONAL, vec![certain, name.clone(), name])
    });
}
