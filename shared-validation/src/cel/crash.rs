//! Crashes of the API server's evaluation, which it survives: the whole expression fails then, also where `||`, `&&` or
//! a macro would do without the part that did.

use std::cell::Cell;

use ::cel::ExecutionError;

thread_local! {
    static MET: Cell<Option<String>> = const { Cell::new(None) };
}

/// Notes a crash, and is the error to go on with until the evaluation has ended.
pub(super) fn note(problem: &str) -> ExecutionError {
    let problem = format!("internal error: runtime error: {problem}");
    let error = ExecutionError::function_error("crash", &problem);
    let first = MET.take().unwrap_or(problem);
    MET.set(Some(first));
    error
}

/// The first one since this was asked last.
pub(super) fn take() -> Option<String> {
    MET.take()
}
