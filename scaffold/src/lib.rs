//! Scaffolding of operators: the commands `new` and `add`.
//!
//! The concepts, in reading order:
//!
//! 1. [`Names`]: how the program, the kind and its group are called in Rust, in YAML and on the command line.
//! 2. Templates: the files of an operator of the kind `Greeting`, as a handler and as a reconciler. A project gets them with its own names, so the
//!    templates are read as what they become.
//! 3. [`Audience`]: the users who may create objects of a new kind.
//! 4. [`NewArgs`] and [`AddArgs`]: the arguments of the two commands. [`create`] writes a new repository, and [`add`]
//!    writes to an existing one.
//!
//! No new file replaces one that exists. The files of an author are edited at positions of their syntax tree, and keep their form.

mod add;
mod added;
mod audience;
mod case_file;
mod changes;
mod edits;
mod encoding;
mod error;
mod local_crates;
mod manifest;
mod names;
mod new;
mod object_path;
mod operator_form;
mod project;
mod registration;
mod rustfmt;
mod source;
mod template;
#[cfg(test)]
mod test_repository;

pub use add::{AddArgs, add};
pub use added::Added;
pub use audience::Audience;
pub use error::{Error, Unrestored};
pub use names::Names;
pub use new::{NewArgs, create};
pub use operator_form::OperatorFormArgs;
