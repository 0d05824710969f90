//! Names that are looked up as what they are.

use ::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use crate::cel::careful;

/// Spares the evaluation of `self.a` the question whether `self` is the name of a package and `self.a`
/// that of a variable in it: the `cel` crate asks it, with texts made for that, of every name that fields
/// are selected from, and of nothing else.
pub(super) fn make_plain(expression: &mut IdedExpr) {
    careful::each(expression, &mut |node| {
        if let Expr::Select(select) = &mut node.expr
            && matches!(&select.operand.expr, Expr::Ident(name) if name == "self" || name == "oldSelf")
        {
            make_no_name(&mut select.operand);
        }
    });
}

/// `e` as `true ? e : e`.
fn make_no_name(expression: &mut IdedExpr) {
    let id = expression.id;
    let node = |expr| IdedExpr { id, expr };
    let certain = node(Expr::Literal(LiteralValue::Boolean(true.into())));
    let call = CallExpr {
        func_name: operators::CONDITIONAL.to_owned(),
        target: None,
        args: vec![certain, expression.clone(), expression.clone()],
    };
    *expression = node(Expr::Call(call));
}
