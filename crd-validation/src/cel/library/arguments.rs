//! Access to the arguments of functions, and the errors of failed ones.

use ::cel::ExecutionError;
use ::cel::common::value::{CowVal, Val};

/// Returns the error of a failed function.
pub(super) fn failed(function: &str, problem: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, problem)
}

/// Returns the items of a list of any type.
pub(in crate::cel) fn items<'b, 'v>(
    list: &'b (dyn Val + 'v),
    function: &str,
) -> Result<Vec<&'b (dyn Val + 'v)>, ExecutionError> {
    let mut iterator = list
        .as_iterable()
        .ok_or_else(|| failed(function, "no such overload"))?
        .iter();
    Ok(std::iter::from_fn(move || iterator.next()).collect())
}

/// Returns an argument. It always exists, because overloads are selected by the number of arguments.
pub(super) fn argument<'a, 'b, 'v>(
    arguments: &'a [CowVal<'b, 'v>],
    index: usize,
    function: &str,
) -> Result<&'a CowVal<'b, 'v>, ExecutionError> {
    arguments
        .get(index)
        .ok_or_else(|| failed(function, "no such overload"))
}
