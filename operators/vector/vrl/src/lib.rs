//! Vector Remap Language: compilation, cost limits and the signatures of its functions. This crate is pure.
//!
//! A [`Compiler`] compiles the programs of one configuration. [`InProcessCompiler`] does so in the calling thread; a
//! process that needs limits of time and memory brings its own. [`ProgramLimits`] rejects programs that would cost too
//! much. [`RunnableProgram`] runs a program on the machine of its author.

mod compiler;
mod cost;
mod diagnostic;
mod hint;
mod language;
mod limits;
mod operator_cost;
mod program;
mod regex_cost;
mod run;
mod stdlib;

pub use crate::compiler::{Compiler, InProcessCompiler, MakeCompiler, VRL_VERSION};
pub use crate::cost::VrlCost;
pub use crate::diagnostic::VrlDiagnostic;
pub use crate::language::Language;
pub use crate::limits::ProgramLimits;
pub use crate::program::{Program, Purpose};
pub use crate::run::{Event, NotRunnable, RunnableProgram, Stop};
pub use crate::stdlib::is_known_function;
