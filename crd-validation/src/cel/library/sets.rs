//! Set operations on lists.

use ::cel::common::types::{CelBool, LIST_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::cost;
use crate::cel::equality::same;
use crate::cel::library::arguments::{argument, failed, items};

type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let two = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", two(), contains)?;
    env.add_overload(
        "sets.equivalent",
        "list_sets_equivalent_list",
        two(),
        equivalent,
    )?;
    env.add_overload(
        "sets.intersects",
        "list_sets_intersects_list",
        two(),
        intersects,
    )
}

fn compare<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    holds: impl Fn(&[&dyn Val], &[&dyn Val]) -> Result<bool, ExecutionError>,
) -> Outcome<'b, 'v> {
    let a = items(argument(arguments, 0, "sets")?.as_ref(), "sets")?;
    let b = items(argument(arguments, 1, "sets")?.as_ref(), "sets")?;
    if !cost::take(a.len().saturating_mul(b.len()) / cost::COMPARISONS_PER_UNIT) {
        return Err(failed("sets", "the cost budget is exhausted"));
    }
    Ok(CowVal::owned(CelBool::from(holds(&a, &b)?)))
}

/// Returns true if the list contains the item. An item without a CEL value is an error only if no other item is
/// equal.
fn has(list: &[&dyn Val], item: &dyn Val) -> Result<bool, ExecutionError> {
    let mut failure = None;
    for other in list {
        match same(*other, item) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(false), Err)
}

fn has_all(a: &[&dyn Val], b: &[&dyn Val]) -> Result<bool, ExecutionError> {
    for item in b {
        if !has(a, *item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    compare(&arguments, has_all)
}

fn equivalent<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    compare(&arguments, |a, b| Ok(has_all(a, b)? && has_all(b, a)?))
}

fn intersects<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    // An item that cannot be compared is in no list.
    compare(&arguments, |a, b| {
        Ok(a.iter().any(|item| has(b, *item).unwrap_or(false)))
    })
}
