//! Compilation of VRL programs in this process, for systems without the resource limits of Unix. Users of these systems
//! validate their own files. The webhook and the controller, which compile the programs of others, run on Linux.

use lockstep_vector_api::{Compiler, InProcessCompiler};

/// Returns a compiler for the programs of a configuration.
pub(crate) fn compiler() -> Box<dyn Compiler> {
    InProcessCompiler::boxed()
}

/// Returns the same compiler: without processes there is no deadline.
pub(crate) fn compiler_with_deadline() -> Box<dyn Compiler> {
    compiler()
}

/// Returns the same compiler: without processes there are no limits of time and memory.
pub(crate) fn offline_compiler() -> Box<dyn Compiler> {
    compiler()
}
