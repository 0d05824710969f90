//! The test cases in `tests/cases`.

pub use lockstep_test::cases::{Case, Expected};

use crate::env::root;

/// Cases of `CloudDatabase`.
pub fn corpus() -> Vec<Case> {
    let cases = corpus_of("cloud-database");
    assert!(cases.len() > 150, "the corpus has lost its cases");
    cases
}

/// Cases of one kind.
pub fn corpus_of(kind: &str) -> Vec<Case> {
    Case::read_folder(&root().join("tests/cases").join(kind))
}
