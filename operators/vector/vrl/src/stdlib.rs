//! VRL functions. Most are those of the VRL library. Functions that only Vector has, or that need unwanted
//! dependencies, are replaced by their signatures: programs are compiled and never run.

pub(crate) mod algorithms;
pub(crate) mod call_error;
pub(crate) mod redactor;
pub(crate) mod restricted;
pub(crate) mod result_types;
pub(crate) mod signature;
pub(crate) mod signatures;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use vrl::compiler::Function;

use crate::stdlib::restricted::RestrictedFunction;
pub(crate) use crate::stdlib::signature::{Files, Meanings, NotRun, Tables};

/// Returns every function.
fn all() -> &'static [Box<dyn Function>] {
    static ALL: OnceLock<Vec<Box<dyn Function>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let own = signatures::SIGNATURES.iter();
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

/// Functions that a program may call, in the form that the compiler expects. They are kept, because consecutive
/// programs usually have the same denied functions.
#[derive(Default)]
pub(crate) struct AllowedFunctions {
    denied: BTreeSet<String>,
    /// Empty before the first program.
    functions: Vec<Box<dyn Function>>,
}

impl AllowedFunctions {
    /// Returns every function; calls of the `denied` ones do not compile.
    pub(crate) fn without(&mut self, denied: &BTreeSet<String>) -> &[Box<dyn Function>] {
        if self.functions.is_empty() || self.denied != *denied {
            let functions = all().iter();
            let functions = functions.map(|function| restrict(function.as_ref(), denied));
            self.functions = functions.collect();
            self.denied.clone_from(denied);
        }
        &self.functions
    }
}

fn restrict(function: &'static dyn Function, denied: &BTreeSet<String>) -> Box<dyn Function> {
    Box::new(RestrictedFunction {
        function,
        is_denied: denied.contains(function.identifier()),
    })
}

/// Returns true if a function with this name exists.
#[must_use]
pub fn is_known_function(name: &str) -> bool {
    all().iter().any(|function| function.identifier() == name)
}
