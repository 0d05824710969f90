//! Operators of this program.

pub mod greeting;

use lockstep_sdk::{Audience, Operator, Program};

/// Returns the program with its operators.
pub fn program() -> Program {
    Program::new("greeting-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Validate and reconcile Greeting objects")
        .examples(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"))
        .operator(Operator::of(Audience::Administrators, greeting::operator))
}
