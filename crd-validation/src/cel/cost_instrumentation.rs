//! CEL cost accounting: rewrites expressions so that their evaluation is charged to a budget.

use ::cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use crate::cel::ast::{boolean, call, children_mut, replace, wrap};
use crate::cel::cost::{EACH_WITH_EACH, READ, READ_TEXT, STEP, WEIGHED};
use crate::cel::library::names::has_name;
use crate::cel::library::overloads::redirect;

/// Instruments an expression. Each step of a comprehension first charges the budget, functions within
/// comprehensions charge for the data that they read, and operations whose results can grow charge for their
/// results. Calls of functions that the `cel` crate implements differently are redirected to the functions of
/// this crate.
pub(crate) fn instrument(expression: &mut IdedExpr) {
    walk(expression, false);
}

fn walk(expression: &mut IdedExpr, repeated: bool) {
    if let Expr::Comprehension(comprehension) = &mut expression.expr {
        let comprehension = &mut **comprehension;
        walk(&mut comprehension.iter_range, repeated);
        walk(&mut comprehension.accu_init, repeated);
        walk(&mut comprehension.result, repeated);
        walk(&mut comprehension.loop_cond, true);
        walk(&mut comprehension.loop_step, true);
        guard(&mut comprehension.loop_step);
        return;
    }
    for child in children_mut(expression) {
        walk(child, repeated);
    }
    let Expr::Call(call) = &mut expression.expr else {
        return;
    };
    redirect(call);
    // Outside of comprehensions, a function reads at most the whole object once.
    if repeated {
        pay_for_reading(call);
    }
    if grows(call) {
        wrap(expression, WEIGHED);
    }
}

/// Returns true if the result of a call can be larger than its arguments. A long chain of such calls could
/// produce a result of any size.
fn grows(call: &mut CallExpr) -> bool {
    match call.func_name.as_str() {
        // Elements that a comprehension step collects are charged separately.
        operators::ADD => collected(&mut call.args).is_none(),
        name => matches!(name, "quote" | "strings.quote"),
    }
}

/// Makes a function charge for its operands if it reads all of them.
fn pay_for_reading(call: &mut CallExpr) {
    let reads = match call.func_name.as_str() {
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::IN => READ,
        // The size of a list is stored, so only strings are charged.
        "size" => READ_TEXT,
        name if name.starts_with(|c: char| c.is_ascii_alphabetic()) => READ,
        _ => return,
    };
    let operands = call.target.iter_mut().map(|target| &mut **target);
    for operand in operands.chain(&mut call.args) {
        let is_constant = match &operand.expr {
            Expr::Literal(_) => true,
            // For example `sets` in `sets.contains`.
            Expr::Ident(name) => has_name(name),
            _ => false,
        };
        if !is_constant {
            wrap(operand, reads);
        }
    }
}

/// Returns the expression without its charging wrapper, if it has one.
pub(crate) fn unpaid(expression: &IdedExpr) -> &IdedExpr {
    match &expression.expr {
        Expr::Call(call)
            if matches!(
                call.func_name.as_str(),
                READ | READ_TEXT | WEIGHED | EACH_WITH_EACH
            ) =>
        {
            call.args.first().map_or(expression, unpaid)
        }
        _ => expression,
    }
}

/// Instruments one comprehension step. It handles the forms that macros generate. Once the budget is exhausted,
/// the value of a step either ends the comprehension or has no effect until it ends.
fn guard(step: &mut IdedExpr) {
    let Expr::Call(call) = &mut step.expr else {
        return;
    };
    match (call.func_name.as_str(), call.args.as_mut_slice()) {
        (operators::LOGICAL_AND, [_, predicate]) => charge_step(predicate, false),
        (operators::LOGICAL_OR, [_, predicate]) => charge_step(predicate, true),
        (operators::CONDITIONAL, [condition, taken, _]) => {
            charge_step(condition, false);
            if let Expr::Call(call) = &mut taken.expr
                && let Some(element) = collected(&mut call.args)
            {
                wrap(element, WEIGHED);
            }
        }
        (operators::ADD, args) => {
            if let Some(element) = collected(args) {
                wrap(element, WEIGHED);
                charge_step(element, false);
            }
        }
        _ => {}
    }
}

/// Returns `e` in `@result + [e]`.
fn collected(args: &mut [IdedExpr]) -> Option<&mut IdedExpr> {
    match args {
        [
            _,
            IdedExpr {
                expr: Expr::List(list),
                ..
            },
        ] => list.elements.first_mut(),
        _ => None,
    }
}

/// Rewrites `e` to `@step() ? e : otherwise`.
fn charge_step(expression: &mut IdedExpr, otherwise: bool) {
    replace(expression, |inner| {
        let id = inner.id;
        let of = |expr| IdedExpr { id, expr };
        let (charged, otherwise) = (of(call(STEP, vec![])), of(boolean(otherwise)));
        call(operators::CONDITIONAL, vec![charged, inner, otherwise])
    });
}
