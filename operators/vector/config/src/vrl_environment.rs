//! Environment of the VRL programs of configurations: a compiler, limits, and access to files.

use lockstep_vector_vrl::{MakeCompiler, ProgramLimits};

use crate::limits::ComponentLimits;

/// Compiler, limits and files for VRL programs.
#[derive(Clone, Copy, Debug)]
pub struct VrlEnvironment {
    /// Creates the compiler for a configuration.
    pub compiler: MakeCompiler,
    /// Limits of the programs.
    pub limits: &'static ProgramLimits,
    /// Limits of the components.
    pub components: ComponentLimits,
    /// Reads the file with the program of a `remap` transform.
    pub read_file: fn(&str) -> Result<String, ProgramFileError>,
    /// Checks that a file that Vector reads while it compiles a program can be read, and returns why not. None if the files
    /// of Vector are on another machine: programs that need them are rejected.
    pub check_file: Option<CheckFile>,
}

/// Function that returns why a file cannot be read.
pub type CheckFile = fn(&str) -> Result<(), String>;

/// Reason why the program of a `remap` transform that is in a file is not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramFileError {
    /// The file is on the host of Vector.
    OfHost,
    /// The file cannot be read, for the reason in the description.
    Unreadable(String),
}

impl VrlEnvironment {
    /// Returns the environment for programs of other people, which has no files.
    #[must_use]
    pub const fn shared(compiler: MakeCompiler) -> Self {
        Self {
            compiler,
            limits: &ProgramLimits::SHARED,
            components: ComponentLimits::OfPipeline,
            read_file: |_| Err(ProgramFileError::OfHost),
            check_file: None,
        }
    }
}
