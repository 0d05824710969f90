//! Scaffolding of operators: the commands `new` and `add`.
//!
//! The concepts, in reading order:
//!
//! 1. [`Names`]: how the program, the kind and its group are called in Rust, in YAML and on the command line.
//! 2. Templates: the files of an operator of the kind `Greeting`, as a handler and as a reconciler. A project gets them with its own names, so the
//!    templates are read as what they become.
//! 3. [`NewArgs`] and [`AddArgs`]: the arguments of the two commands. [`create`] writes a new repository, and [`add`]
//!    writes to an existing one.
//!
//! Nothing is overwritten: a file that exists is an error.

mod add;
mod case_file;
mod error;
mod local_crates;
mod names;
mod new;
mod operator_form;
mod project;
mod registration;
mod source;
mod template;

pub use add::{AddArgs, add};
pub use error::Error;
pub use names::Names;
pub use new::{NewArgs, create};
pub use operator_form::OperatorFormArgs;
