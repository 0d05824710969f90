//! The functions of Vector's language: those that its library gives, and beside them, by signature alone, those
//! that are Vector's own or need what is not wanted here. A program is compiled, never run.

mod guarded;
mod signature;
mod table;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use vrl::compiler::Function;

use guarded::Guarded;
pub(crate) use signature::{Meanings, Tables};

/// Every function that there is.
fn all() -> &'static [Box<dyn Function>] {
    static ALL: OnceLock<Vec<Box<dyn Function>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let own = table::SIGNATURES.iter();
        let own: Vec<Box<dyn Function>> = own.map(|signature| Box::new(signature) as _).collect();
        let is_own = |name: &str| own.iter().any(|function| function.identifier() == name);
        let library = vrl::stdlib::all().into_iter();
        let mut all: Vec<_> = library
            .filter(|function| !is_own(function.identifier()))
            .collect();
        all.extend(own);
        all
    })
}

/// Every function, of which a program may call all but some.
pub(crate) fn but(denied: &BTreeSet<String>) -> Vec<Box<dyn Function>> {
    let functions = all().iter();
    let guarded = functions.map(|function| {
        let is_denied = denied.contains(function.identifier());
        Box::new(Guarded {
            function: function.as_ref(),
            is_denied,
        }) as Box<dyn Function>
    });
    guarded.collect()
}

/// Whether there is such a function.
pub(crate) fn is_known(name: &str) -> bool {
    all().iter().any(|function| function.identifier() == name)
}
