//! Lists taken as sets.

use ::cel::common::types::{CelBool, LIST_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::{argument, items};

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

fn judge<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    holds: impl Fn(&[&(dyn Val + 'v)], &[&(dyn Val + 'v)]) -> bool,
) -> Outcome<'b, 'v> {
    let a = items(argument(arguments, 0, "sets")?.as_ref(), "sets")?;
    let b = items(argument(arguments, 1, "sets")?.as_ref(), "sets")?;
    Ok(CowVal::owned(CelBool::from(holds(&a, &b))))
}

fn has(list: &[&dyn Val], item: &dyn Val) -> bool {
    list.iter().any(|other| other.equals(item))
}

fn contains<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    judge(&arguments, |a, b| b.iter().all(|item| has(a, *item)))
}

fn equivalent<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    judge(&arguments, |a, b| {
        a.iter().all(|item| has(b, *item)) && b.iter().all(|item| has(a, *item))
    })
}

fn intersects<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    judge(&arguments, |a, b| a.iter().any(|item| has(b, *item)))
}
