//! Operators of this program.

pub mod note;

use lockstep_sdk::{Operator, Program};

/// Returns the program with its operators.
pub fn program() -> Program {
    Program::new("note-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Validate and reconcile Note objects")
        .examples(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"))
        .operator(Operator::of(note::operator))
}
