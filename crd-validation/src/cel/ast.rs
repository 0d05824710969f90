//! Traversal and construction of expression nodes.

use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, StructExpr,
};

/// Defines a function that returns the child nodes, for shared or mutable access.
macro_rules! children {
    ($(#[$doc:meta])* $name:ident $(, $mutable:tt)?) => {
        $(#[$doc])*
        pub(super) fn $name(node: &$($mutable)? IdedExpr) -> Vec<&$($mutable)? IdedExpr> {
            let mut children: Vec<&$($mutable)? IdedExpr> = Vec::new();
            match &$($mutable)? node.expr {
                Expr::Call(call) => {
                    if let Some(target) = &$($mutable)? call.target {
                        children.push(target);
                    }
                    children.extend(&$($mutable)? call.args);
                }
                Expr::Comprehension(comprehension) => {
                    let ComprehensionExpr {
                        iter_range,
                        accu_init,
                        loop_cond,
                        loop_step,
                        result,
                        ..
                    } = &$($mutable)? **comprehension;
                    children.extend([iter_range, accu_init, loop_cond, loop_step, result]);
                }
                Expr::List(list) => children.extend(&$($mutable)? list.elements),
                Expr::Map(MapExpr { entries }) | Expr::Struct(StructExpr { entries, .. }) => {
                    for entry in entries {
                        match &$($mutable)? entry.expr {
                            EntryExpr::MapEntry(entry) => {
                                children.push(&$($mutable)? entry.key);
                                children.push(&$($mutable)? entry.value);
                            }
                            EntryExpr::StructField(field) => children.push(&$($mutable)? field.value),
                        }
                    }
                }
                Expr::Select(select) => children.push(&$($mutable)? select.operand),
                Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
            }
            children
        }
    };
}

children!(
    /// Returns the direct child nodes of a node.
    children
);

children!(
    /// Returns the direct child nodes of a node, mutably.
    children_mut,
    mut
);

/// Visits every node, children before their parent.
pub(super) fn each(node: &mut IdedExpr, visit: &mut dyn FnMut(&mut IdedExpr)) {
    for child in children_mut(node) {
        each(child, visit);
    }
    visit(node);
}

/// Rewrites `e` to `function(e)`.
pub(super) fn wrap(expression: &mut IdedExpr, function: &str) {
    replace(expression, |inner| call(function, vec![inner]));
}

/// Replaces an expression by one that is built from it.
pub(super) fn replace(expression: &mut IdedExpr, make: impl FnOnce(IdedExpr) -> Expr) {
    let id = expression.id;
    let inner = std::mem::take(expression);
    *expression = IdedExpr {
        id,
        expr: make(inner),
    };
}

pub(super) fn call(function: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    })
}

pub(super) fn boolean(value: bool) -> Expr {
    Expr::Literal(LiteralValue::Boolean(value.into()))
}
