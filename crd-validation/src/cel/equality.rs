//! Equality of CEL values as in the API server.

use ::cel::ExecutionError;
use ::cel::common::traits::Sizer;
use ::cel::common::types::{CelOptional, Kind};
use ::cel::common::value::Val;

use crate::cel::dyn_value::Unrepresentable;
use crate::cel::identities::Identities;
use crate::cel::library::arguments::items;
use crate::cel::map_key::Identified;

/// Internal function that fails if its operand has no CEL representation.
pub(super) const SOUND: &str = "@sound";

/// Fails if a value has no CEL representation.
pub(crate) fn reject_unrepresentable(value: &dyn Val) -> Result<(), ExecutionError> {
    if let Some(Unrepresentable(problem)) = value.downcast_ref::<Unrepresentable>() {
        return Err(ExecutionError::function_error(SOUND, problem));
    }
    match value
        .downcast_ref::<CelOptional>()
        .and_then(|optional| optional.inner())
    {
        Some(inner) => reject_unrepresentable(inner),
        None => Ok(()),
    }
}

/// Compares two operands, which must both have CEL values.
pub(crate) fn same(a: &dyn Val, b: &dyn Val) -> Result<bool, ExecutionError> {
    reject_unrepresentable(a)?;
    reject_unrepresentable(b)?;
    same_within(a, b)
}

/// Compares the contents of two operands. It fails only when it reaches data of the left operand that has no
/// CEL value. A scalar is simply unequal to such data of the right operand.
pub(crate) fn same_within(a: &dyn Val, b: &dyn Val) -> Result<bool, ExecutionError> {
    reject_unrepresentable(a)?;
    let is_scalar = !matches!(a.get_type().kind(), Kind::List | Kind::Map);
    match reject_unrepresentable(b) {
        Err(_) if is_scalar => return Ok(false),
        checked => checked?,
    }
    match (a.get_type().kind(), b.get_type().kind()) {
        (Kind::List, Kind::List) => {
            if let Some(identities) = Identities::of(a) {
                return are_same(identities, a, b);
            }
            let sizes = (a.as_sizer().map(Sizer::size), b.as_sizer().map(Sizer::size));
            let (Some(a), Some(b)) = (a.as_iterable(), b.as_iterable()) else {
                return Ok(false);
            };
            if sizes.0 != sizes.1 {
                return Ok(false);
            }
            let (mut a, mut b) = (a.iter(), b.iter());
            loop {
                match (a.next(), b.next()) {
                    (None, None) => return Ok(true),
                    (Some(a), Some(b)) if same_within(a, b)? => {}
                    _ => return Ok(false),
                }
            }
        }
        (Kind::Map, Kind::Map) => {
            if a.as_sizer().map(Sizer::size) != b.as_sizer().map(Sizer::size) {
                return Ok(false);
            }
            let (Some(keys), Some(a), Some(b)) = (a.as_iterable(), a.as_indexer(), b.as_indexer())
            else {
                return Ok(false);
            };
            let mut keys = keys.iter();
            let mut failure = None;
            while let Some(key) = keys.next() {
                let Ok(other) = b.get(key) else {
                    return Ok(false);
                };
                match same_within(a.get(key)?.as_ref(), other.as_ref()) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            // Fields have no order: the API server stops at the first that fails, and any of them may be the
            // first. This result is one of its possible results.
            failure.map_or(Ok(true), Err)
        }
        _ => Ok(a.equals(b)),
    }
}

/// Returns true if `other` has the same items as `list`, to which the identities belong.
pub(super) fn are_same(
    identities: &Identities,
    list: &dyn Val,
    other: &dyn Val,
) -> Result<bool, ExecutionError> {
    let (items, others) = (items(list, "_==_")?, items(other, "_==_")?);
    if items.len() != others.len() {
        return Ok(false);
    }
    let positions = identities.positions()?;
    for (identity, item) in identities.of_others(other, &others).iter().zip(&others) {
        match (positions.get(identity)?, &identities.by) {
            (Some(_), Identified::Whole) => {}
            (Some(position), Identified::By(_)) if same_within(items[position], *item)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}
