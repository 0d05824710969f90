//! Evaluation of data that contains values without CEL representation, and of errors with two causes.
//!
//! The API server converts a value when an expression accesses it, and fails at that moment. The `cel` crate
//! does not support failed values. If the data contains one, expressions are therefore evaluated in a checked
//! form, which tests each value that they access.

use ::cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use ::cel::common::types::{CelBool, DYN_TYPE, Kind, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::ast::{call, each, wrap};
use crate::cel::cost_instrumentation::unpaid;
use crate::cel::equality::{SOUND, reject_unrepresentable, same, same_within};
use crate::cel::identities::Identities;
use crate::cel::library::names::has_name;

const HAS: &str = "@has";
const CONTAINS: &str = "@contains";
const EQUALS: &str = "@equals";
const EQUALS_COMPUTED: &str = "@equals_computed";
const EQUALS_MADE: &str = "@equals_made";

pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(SOUND, "sound", vec![DYN_TYPE], sound)?;
    env.add_overload(HAS, "has", vec![DYN_TYPE, STRING_TYPE], has)?;
    env.add_overload(CONTAINS, "contains", vec![DYN_TYPE, DYN_TYPE], contains)?;
    env.add_overload(EQUALS, "equals", vec![DYN_TYPE, DYN_TYPE], equals)?;
    env.add_overload(
        EQUALS_COMPUTED,
        "equals_computed",
        vec![DYN_TYPE, DYN_TYPE],
        equals_computed,
    )?;
    env.add_overload(
        EQUALS_MADE,
        "equals_made",
        vec![DYN_TYPE, DYN_TYPE],
        equals_made,
    )
}

/// Returns the checked form of an expression.
pub(crate) fn expression(plain: &IdedExpr) -> IdedExpr {
    let mut careful = plain.clone();
    each(&mut careful, &mut make_careful);
    careful
}

/// Returns the expression with the operands of `&&` and `||` swapped. This changes only which error is reported
/// if both operands fail.
pub(crate) fn swapped(plain: &IdedExpr, careful: bool) -> IdedExpr {
    let mut swapped = if careful {
        expression(plain)
    } else {
        plain.clone()
    };
    each(&mut swapped, &mut |node| {
        if let Expr::Call(call) = &mut node.expr
            && matches!(
                call.func_name.as_str(),
                operators::LOGICAL_AND | operators::LOGICAL_OR
            )
        {
            call.args.reverse();
        }
    });
    swapped
}

fn make_careful(node: &mut IdedExpr) {
    let wraps = match &mut node.expr {
        Expr::Ident(name) => !name.starts_with(['@', '#']) && !has_name(name),
        Expr::Select(select) if select.test => {
            let field = LiteralValue::String(std::mem::take(&mut select.field).into());
            let field = IdedExpr {
                id: node.id,
                expr: Expr::Literal(field),
            };
            let operand = std::mem::take(&mut *select.operand);
            node.expr = call(HAS, vec![operand, field]);
            false
        }
        Expr::Select(_) => true,
        Expr::Call(call) => match call.func_name.as_str() {
            // The parts of a pair are checked when its variables are used.
            operators::INDEX if is_internal(call.args.first()) => false,
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => true,
            operators::IN => {
                CONTAINS.clone_into(&mut call.func_name);
                false
            }
            operators::EQUALS => {
                equality(&call.args).clone_into(&mut call.func_name);
                false
            }
            operators::NOT_EQUALS => {
                equality(&call.args).clone_into(&mut call.func_name);
                wrap(node, operators::LOGICAL_NOT);
                false
            }
            _ => false,
        },
        _ => false,
    };
    if wraps {
        wrap(node, SOUND);
    }
}

/// Returns the function that compares two operands. A list from the data fails at its first item without a CEL
/// value. A list from a function, a macro or a literal treats an item that cannot be compared as equal. Any
/// other list fails only if no later item differs.
fn equality(operands: &[IdedExpr]) -> &'static str {
    const MAKERS: [&str; 4] = ["distinct", "flatten", "reverse", "slice"];
    match operands.first().map(|operand| &unpaid(operand).expr) {
        Some(Expr::Call(call)) if call.func_name == SOUND => EQUALS,
        Some(Expr::Call(call)) if MAKERS.contains(&call.func_name.as_str()) => EQUALS_MADE,
        Some(Expr::List(_) | Expr::Comprehension(_)) => EQUALS_MADE,
        _ => EQUALS_COMPUTED,
    }
}

fn is_internal(operand: Option<&IdedExpr>) -> bool {
    operand
        .is_some_and(|operand| matches!(&operand.expr, Expr::Ident(name) if name.starts_with('@')))
}

fn sound<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = arguments
        .pop()
        .ok_or_else(|| ExecutionError::function_error(SOUND, "no value"))?;
    reject_unrepresentable(value.as_ref())?;
    Ok(value)
}

fn has<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [operand, field] = arguments.as_slice() else {
        return Err(ExecutionError::function_error(HAS, "no values"));
    };
    let indexer = operand
        .as_indexer()
        .ok_or_else(|| ExecutionError::function_error(HAS, "no such overload"))?;
    let found = indexer.get(field.as_ref());
    if let Ok(value) = &found {
        reject_unrepresentable(value.as_ref())?;
    }
    Ok(CowVal::owned(CelBool::from(found.is_ok())))
}

/// Evaluates `value in container`. An item without a CEL value is an error only if no other item equals the
/// value.
fn contains<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value, container] = arguments.as_slice() else {
        return Err(ExecutionError::function_error(CONTAINS, "no values"));
    };
    let no_overload = || ExecutionError::function_error(CONTAINS, "no such overload");
    if container.get_type().kind() != Kind::List {
        let holds = container
            .as_container()
            .ok_or_else(no_overload)?
            .contains(value.as_ref())?;
        return Ok(CowVal::owned(CelBool::from(holds)));
    }
    let mut items = container.as_iterable().ok_or_else(no_overload)?.iter();
    let mut failure = None;
    while let Some(item) = items.next() {
        match same(item, value.as_ref()) {
            Ok(true) => return Ok(CowVal::owned(CelBool::from(true))),
            Ok(false) => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(CowVal::owned(CelBool::from(false))),
    }
}

fn equals<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [a, b] = arguments.as_slice() else {
        return Err(ExecutionError::function_error(EQUALS, "no values"));
    };
    same(a.as_ref(), b.as_ref()).map(|same| CowVal::owned(CelBool::from(same)))
}

fn equals_computed<'b, 'v>(
    arguments: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    pairwise(arguments, same_within)
}

fn equals_made<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    pairwise(arguments, |a, b| Ok(same_within(a, b).unwrap_or(true)))
}

/// Compares two lists item by item. A failed comparison is an error only if no other items differ.
fn pairwise<'b, 'v>(
    arguments: Vec<CowVal<'b, 'v>>,
    same: impl Fn(&dyn Val, &dyn Val) -> Result<bool, ExecutionError>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [a, b] = arguments.as_slice() else {
        return Err(ExecutionError::function_error(EQUALS, "no values"));
    };
    let (Kind::List, Kind::List) = (a.get_type().kind(), b.get_type().kind()) else {
        return equals(arguments);
    };
    if Identities::of(a.as_ref()).is_some() {
        return equals(arguments);
    }
    let (Some(a), Some(b)) = (a.as_iterable(), b.as_iterable()) else {
        return equals(arguments);
    };
    let (mut a, mut b) = (a.iter(), b.iter());
    let mut failure = None;
    let is_same = loop {
        match (a.next(), b.next()) {
            (None, None) => break true,
            (Some(a), Some(b)) => match same(a, b) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(error) => failure = failure.or(Some(error)),
            },
            _ => break false,
        }
    };
    match failure {
        Some(error) if is_same => Err(error),
        _ => Ok(CowVal::owned(CelBool::from(is_same))),
    }
}
