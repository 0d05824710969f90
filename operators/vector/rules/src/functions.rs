//! The functions of Vector's language: those that its library gives, and beside them, by signature alone, those
//! that are Vector's own or need what is not wanted here. A program is compiled, never run.

mod signature;
mod table;

use std::sync::OnceLock;

use vrl::compiler::Function;

pub(crate) use signature::{Meanings, Tables};

/// Every function that a program may call.
pub(crate) fn all() -> &'static [Box<dyn Function>] {
    static ALL: OnceLock<Vec<Box<dyn Function>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let own = table::SIGNATURES.iter().map(|signature| Box::new(signature) as _);
        let own: Vec<Box<dyn Function>> = own.collect();
        let is_own = |name: &str| own.iter().any(|function| function.identifier() == name);
        let library = vrl::stdlib::all().into_iter();
        let mut all: Vec<_> = library.filter(|function| !is_own(function.identifier())).collect();
        all.extend(own);
        all
    })
}
