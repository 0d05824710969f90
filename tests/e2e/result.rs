//! Results of `lockstep check` on many objects.

use std::path::Path;

use lockstep_test::cases::check;
pub use lockstep_test::cases::{CheckResult, Finding};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lockstep");

/// Runs `lockstep check` on a folder and returns the result of each object as JSON.
pub fn check_folder(folder: &Path) -> Vec<Value> {
    check(PROGRAM.as_ref(), &["--output=json"], folder)
}

/// Runs `lockstep check` on a file with a request in each line and returns the result of each line as JSON.
pub fn check_lines(file: &Path) -> Vec<Value> {
    check(PROGRAM.as_ref(), &["--input-format=jsonl"], file)
}
