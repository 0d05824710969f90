//! Compilers of VRL programs, by operating system: in worker processes with limits, or in this process.

#[cfg(not(unix))]
pub(crate) use crate::in_process::{compiler, compiler_with_deadline, offline_compiler};
#[cfg(unix)]
pub(crate) use crate::pool::{compiler, compiler_with_deadline, offline_compiler};
