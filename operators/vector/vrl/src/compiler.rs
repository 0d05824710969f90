//! Compiler of VRL programs. The binary selects it, because a program may cost more than its size limits suggest.

use crate::diagnostic::VrlDiagnostic;
use crate::program::Program;
use crate::stdlib::AllowedFunctions;

/// Version of the VRL compiler.
pub const VRL_VERSION: &str = "0.35.0";

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

/// Compiler in the calling thread, without a limit of time or memory.
#[derive(Default)]
pub struct InProcessCompiler {
    functions: AllowedFunctions,
}

impl InProcessCompiler {
    /// Returns a compiler for one configuration, as a [`MakeCompiler`].
    #[must_use]
    pub fn boxed() -> Box<dyn Compiler> {
        Box::new(Self::default())
    }

    /// Compiles a program and returns its diagnostics.
    pub fn compile(&mut self, program: &Program<'_>) -> Vec<VrlDiagnostic> {
        program.compile(&mut self.functions)
    }
}

impl Compiler for InProcessCompiler {
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        Ok(self.compile(program))
    }
}
