//! `lockstep add`: more in an existing repository.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::names::Names;
use crate::project::{Project, read, write};
use crate::template::HANDLER;

/// Add a kind to the repository in the current folder.
#[derive(Debug, Parser)]
#[command(name = "add")]
pub struct AddArgs {
    /// Part to add.
    #[command(subcommand)]
    pub what: What,
}

/// Parts that can be added.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Add a kind with its operator, rules, examples and tests.
    Kind {
        /// Kind of the custom resource, such as `Greeting`.
        kind: String,
        /// API group: a domain that belongs to you.
        #[arg(long)]
        group: String,
        /// API version.
        #[arg(long, value_name = "VERSION", default_value = "v1alpha1")]
        api_version: String,
        /// Plural of the kind in lower case. Default: the English plural.
        #[arg(long)]
        plural: Option<String>,
    },
}

/// Adds to the repository in a folder, and returns the files that were changed besides new ones.
///
/// # Errors
///
/// A name is not allowed, a file exists, or the folder is no repository of an operator. Nothing is written then.
pub fn add(args: &AddArgs, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let project = Project::in_folder(folder);
    let What::Kind {
        kind,
        group,
        api_version,
        plural,
    } = &args.what;
    let program = program(&project)?;
    let names = Names::new(&program, kind, group, api_version, plural.as_deref())?;
    let library = project.path("src/lib.rs");
    let registered = registered(&read(&library)?, &names).ok_or_else(|| Error::NoProject {
        path: library.clone(),
        problem: "no module, or no call of `.operator(…)` in one line, was found; add `pub mod` and `.operator(…)` by hand",
    })?;
    project.write(HANDLER, &names)?;
    write(&library, &registered)?;
    project.format();
    Ok(vec![library])
}

/// Returns the name of the program.
fn program(project: &Project) -> Result<String, Error> {
    let manifest = project.path("Cargo.toml");
    let text = read(&manifest)?;
    let line = text.lines().find(|line| line.starts_with("name = "));
    let name = line.and_then(|line| line.split('"').nth(1));
    name.map(ToOwned::to_owned).ok_or(Error::NoProject {
        path: manifest,
        problem: "the package has no name",
    })
}

/// Returns the library with the module and the registration of a kind, after those that it has.
fn registered(library: &str, names: &Names) -> Option<String> {
    let mut lines: Vec<String> = library.lines().map(ToOwned::to_owned).collect();
    let last = |lines: &[String], start: &str| {
        lines
            .iter()
            .rposition(|line| line.trim_start().starts_with(start))
    };
    let operator = last(&lines, ".operator(")?;
    let indent = lines[operator].len() - lines[operator].trim_start().len();
    let registration = format!(
        "{}.operator(Operator::of({}::operator))",
        " ".repeat(indent),
        names.module
    );
    // A call of several lines is not changed: the reader adds the kind.
    let count = |bracket| lines[operator].matches(bracket).count();
    if count('(') != count(')') {
        return None;
    }
    let ends_statement = lines[operator].ends_with(';');
    let registration = if ends_statement {
        let without = lines[operator].trim_end_matches(';').to_owned();
        lines[operator] = without;
        registration + ";"
    } else {
        registration
    };
    lines.insert(operator + 1, registration);
    let module = last(&lines, "pub mod ")?;
    lines.insert(module + 1, format!("pub mod {};", names.module));
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_registered_after_the_others() {
        let library = "//! Operators.\n\npub mod first;\n\nfn program() -> Program {\n    Program::new(\"a\")\n        \
                       .operator(Operator::of(first::operator))\n}\n";
        let names = Names::new("a", "SecondKind", "demo.example.com", "v1", None).expect("names");
        let expected = "//! Operators.\n\npub mod first;\npub mod second_kind;\n\nfn program() -> Program {\n    \
                        Program::new(\"a\")\n        .operator(Operator::of(first::operator))\n        \
                        .operator(Operator::of(second_kind::operator))\n}\n";
        assert_eq!(registered(library, &names).as_deref(), Some(expected));
        assert_eq!(registered("fn main() {}\n", &names), None);
        let several =
            "pub mod first;\n        .operator(\n            first::operator(),\n        )\n";
        assert_eq!(registered(several, &names), None);
    }
}
