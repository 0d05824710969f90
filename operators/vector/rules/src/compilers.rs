//! Who compiles programs: whoever has the process decides, since a program may cost more than its bounds tell.

use std::sync::OnceLock;

use crate::program::{Program, VrlDiagnostic};

/// Compiles the programs of one configuration, one after the other.
pub trait Compiler {
    /// What is found in a program.
    ///
    /// # Errors
    ///
    /// When it cannot be told, for a reason that is not for sure the program's. No other program of the same
    /// configuration is asked for then.
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String>;
}

/// Makes a compiler for a configuration.
pub type MakeCompiler = fn() -> Box<dyn Compiler>;

static MAKE: OnceLock<MakeCompiler> = OnceLock::new();

/// Sets who compiles programs in this process, once and before any is judged. Without it, whoever judges.
///
/// # Panics
///
/// When it is set already.
pub fn set_compiler(make: MakeCompiler) {
    assert!(MAKE.set(make).is_ok(), "the compiler is set once");
}

/// A compiler for a configuration.
pub(crate) fn compiler() -> Box<dyn Compiler> {
    match MAKE.get() {
        Some(make) => make(),
        None => Box::new(InProcess),
    }
}

/// The thread that judges.
struct InProcess;

impl Compiler for InProcess {
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        Ok(program.compile())
    }
}
