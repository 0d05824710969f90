//! Compiler of VRL programs. The binary selects it, because a program may cost more than its size limits suggest.

use std::sync::OnceLock;

use crate::vrl::diagnostic::VrlDiagnostic;
use crate::vrl::program::Program;

/// Compiler for the programs of one configuration, which are compiled one after the other.
pub trait Compiler {
    /// Compiles a program and returns its diagnostics.
    ///
    /// # Errors
    ///
    /// If the program could not be compiled for a reason that may not be caused by the program. No other program of the
    /// same configuration is compiled after that.
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String>;
}

/// Function that creates a compiler for a configuration.
pub type MakeCompiler = fn() -> Box<dyn Compiler>;

static MAKE: OnceLock<MakeCompiler> = OnceLock::new();

/// Sets the compiler of this process. Call it once, before any validation. By default, the validating thread compiles.
///
/// # Panics
///
/// If the compiler is already set.
pub fn set_compiler(make: MakeCompiler) {
    assert!(MAKE.set(make).is_ok(), "the compiler is set once");
}

/// Returns a compiler for a configuration.
pub(crate) fn compiler() -> Box<dyn Compiler> {
    match MAKE.get() {
        Some(make) => make(),
        None => Box::new(InProcess),
    }
}

/// Compiler in the validating thread.
struct InProcess;

impl Compiler for InProcess {
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        Ok(program.compile())
    }
}
