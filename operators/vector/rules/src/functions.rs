//! The functions of Vector's language: those that its library gives, and beside them, by signature alone, those
//! that are Vector's own or need what is not wanted here. A program is compiled, never run.

mod algorithms;
mod guarded;
mod results;
mod signature;
mod table;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use vrl::compiler::Function;
use vrl::diagnostic::{Label, Span};
use vrl::prelude::{DiagnosticMessage, ExpressionError};

use guarded::RestrictedFunction;
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

/// Functions, as the compiler takes them.
type Functions = Arc<Vec<Box<dyn Function>>>;

/// Every function, of which a program may call all but some.
pub(crate) fn allowed_functions(denied: &BTreeSet<String>) -> Functions {
    // Programs come after others that may call the same.
    static LAST: Mutex<Option<(BTreeSet<String>, Functions)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((denied_then, functions)) if denied_then == denied => Arc::clone(functions),
        _ => {
            let functions = Arc::new(
                all()
                    .iter()
                    .map(|function| guarded(function.as_ref(), denied))
                    .collect(),
            );
            *last = Some((denied.clone(), Arc::clone(&functions)));
            functions
        }
    }
}

fn guarded(function: &'static dyn Function, denied: &BTreeSet<String>) -> Box<dyn Function> {
    Box::new(RestrictedFunction {
        function,
        is_denied: denied.contains(function.identifier()),
    })
}

/// What is wrong with a call.
fn wrong(message: impl Into<String>, label: &str, span: Span) -> Box<dyn DiagnosticMessage> {
    Box::new(ExpressionError::Error {
        message: message.into(),
        labels: vec![Label::primary(label, span)],
        notes: Vec::new(),
    })
}

/// Whether there is such a function.
pub(crate) fn is_known(name: &str) -> bool {
    all().iter().any(|function| function.identifier() == name)
}
