//! Runtime panics of the API server's evaluation, from which it recovers. The whole expression fails then, even
//! if `||`, `&&` or a macro would not need the failed part.

use std::cell::Cell;

use ::cel::ExecutionError;

thread_local! {
    static MET: Cell<Option<String>> = const { Cell::new(None) };
}

/// Records a panic and returns the error with which the evaluation continues until it ends.
pub(crate) fn note(problem: &str) -> ExecutionError {
    let problem = format!("internal error: runtime error: {problem}");
    let error = ExecutionError::function_error("crash", &problem);
    let first = MET.take().unwrap_or(problem);
    MET.set(Some(first));
    error
}

/// Returns the first panic since the last call of this function.
pub(crate) fn take() -> Option<String> {
    MET.take()
}
