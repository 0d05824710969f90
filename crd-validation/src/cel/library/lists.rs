//! List functions of Kubernetes, in addition to those of CEL's list extension.

use std::cmp::Ordering;

use ::cel::common::types::{CelBool, CelInt, CelOptional, DYN_TYPE, LIST_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::equality::reject_unrepresentable;
use crate::cel::library::arguments::{argument, failed, items};

type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], min)?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], max)?;
    env.add_member_overload(
        "indexOf",
        "list_index_of",
        LIST_TYPE,
        vec![DYN_TYPE],
        index_of,
    )?;
    env.add_member_overload(
        "lastIndexOf",
        "list_last_index_of",
        LIST_TYPE,
        vec![DYN_TYPE],
        last_index_of,
    )?;
    env.add_member_overload("first", "list_first", LIST_TYPE, vec![], first)?;
    env.add_member_overload("last", "list_last", LIST_TYPE, vec![], last)
}

fn compare(a: &dyn Val, b: &dyn Val, function: &str) -> Result<Ordering, ExecutionError> {
    a.as_comparer()
        .ok_or_else(|| failed(function, "no such overload"))?
        .compare(b)
}

/// Returns the items of a list. The first item selects the overload, so it must have a CEL value.
fn comparable<'b, 'v>(
    list: &'b (dyn Val + 'v),
    function: &str,
) -> Result<Vec<&'b (dyn Val + 'v)>, ExecutionError> {
    let items = items(list, function)?;
    if items
        .first()
        .is_some_and(|first| reject_unrepresentable(*first).is_err())
    {
        return Err(failed(function, "no such overload"));
    }
    Ok(items)
}

fn is_sorted<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0, "isSorted")?;
    let mut before: Option<&dyn Val> = None;
    for item in comparable(list.as_ref(), "isSorted")? {
        reject_unrepresentable(item)?;
        if let Some(before) = before
            && compare(before, item, "isSorted")?.is_gt()
        {
            return Ok(CowVal::owned(CelBool::from(false)));
        }
        before = Some(item);
    }
    Ok(CowVal::owned(CelBool::from(true)))
}

fn sum<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0, "sum")?;
    let items = comparable(list.as_ref(), "sum")?;
    let Some((first, rest)) = items.split_first() else {
        return Ok(CowVal::owned(CelInt::from(0)));
    };
    let mut total: Box<dyn Val + 'v> = first.clone_as_boxed();
    for item in rest {
        reject_unrepresentable(*item)?;
        let adder = total
            .as_adder()
            .ok_or_else(|| failed("sum", "no such overload"))?;
        total = adder.add(*item)?.into_owned();
    }
    Ok(CowVal::Owned(total))
}

fn extreme<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    function: &str,
    better: Ordering,
) -> Outcome<'b, 'v> {
    let list = argument(arguments, 0, function)?;
    let mut best: Option<&(dyn Val + 'v)> = None;
    for item in comparable(list.as_ref(), function)? {
        reject_unrepresentable(item)?;
        let replaces = match best {
            None => true,
            Some(best) => compare(item, best, function)? == better,
        };
        if replaces {
            best = Some(item);
        }
    }
    let best = best.ok_or_else(|| failed(function, format!("{function} called on empty list")))?;
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn min<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    extreme(&arguments, "min", Ordering::Less)
}

fn max<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    extreme(&arguments, "max", Ordering::Greater)
}

fn index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let (list, item) = (
        argument(&arguments, 0, "indexOf")?,
        argument(&arguments, 1, "indexOf")?,
    );
    let items = items(list.as_ref(), "indexOf")?;
    Ok(index_value(
        items.iter().position(|other| other.equals(item.as_ref())),
    ))
}

fn last_index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let (list, item) = (
        argument(&arguments, 0, "lastIndexOf")?,
        argument(&arguments, 1, "lastIndexOf")?,
    );
    let items = items(list.as_ref(), "lastIndexOf")?;
    Ok(index_value(
        items.iter().rposition(|other| other.equals(item.as_ref())),
    ))
}

fn index_value<'b, 'v>(index: Option<usize>) -> CowVal<'b, 'v> {
    let index = index.and_then(|index| i64::try_from(index).ok());
    CowVal::owned(CelInt::from(index.unwrap_or(-1)))
}

fn first<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0, "first")?;
    Ok(optional(items(list.as_ref(), "first")?.first()))
}

fn last<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0, "last")?;
    Ok(optional(items(list.as_ref(), "last")?.last()))
}

fn optional<'b, 'v>(item: Option<&&(dyn Val + 'v)>) -> CowVal<'b, 'v> {
    CowVal::owned(match item {
        Some(item) => CelOptional::of(item.clone_as_boxed()),
        None => CelOptional::none(),
    })
}
