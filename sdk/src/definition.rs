//! Checks of the definition of a program that the compiler cannot make.

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory;

use crate::cli::Cli;
use crate::environment::Environment;

/// Longest name of a program, in bytes. The names of all objects of an installation begin with it, and many of them have at
/// most 63 characters.
const MAX_NAME_BYTES: usize = 40;

/// Error in the definition of a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DefinitionError {
    #[error(
        "the name of the program `{0}` is invalid: the names of Kubernetes objects begin with it, so it must consist of at \
         most {MAX_NAME_BYTES} lowercase letters, digits and `-`, begin with a letter, and not end with `-`"
    )]
    Name(String),
    #[error(
        "two kinds of the program have the name {kind}, of the groups {first} and {second}: `--kinds`, policies and metrics \
         distinguish kinds by their names; rename one of them, or build two programs"
    )]
    Kind {
        kind: String,
        first: &'static str,
        second: &'static str,
    },
    #[error(
        "two subcommands of the program have the name `{0}`; rename the one of the operator or of the program"
    )]
    Subcommand(String),
}

impl Environment {
    /// Returns an error if the program cannot run with this definition.
    pub(crate) fn check_definition(&self) -> Result<(), DefinitionError> {
        if !is_program_name(self.name()) {
            return Err(DefinitionError::Name(self.name().to_owned()));
        }
        let mut groups = BTreeMap::new();
        for (_, kind) in self.registry().kinds() {
            if let Some(first) = groups.insert(kind.kind.to_lowercase(), kind.group) {
                return Err(DefinitionError::Kind {
                    kind: kind.kind.to_owned(),
                    first,
                    second: kind.group,
                });
            }
        }
        let of_operators = self.registry().operators.iter();
        let of_operators = of_operators.flat_map(|operator| &operator.definition.subcommands);
        let additional = of_operators.chain(&self.registry().subcommands);
        let of_every_program = Cli::command();
        let mut names: BTreeSet<_> = of_every_program
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        for subcommand in additional {
            if !names.insert(subcommand.name()) {
                return Err(DefinitionError::Subcommand(subcommand.name().to_owned()));
            }
        }
        Ok(())
    }
}

fn is_program_name(name: &str) -> bool {
    let is_label = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(is_label)
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use clap::Parser;

    use super::*;
    use crate::operator::Operator;
    use crate::operator::audience::Audience;
    use crate::operator::test_kinds::{cellars, lamps};
    use crate::program::Program;

    #[derive(Parser)]
    #[command(name = "check")]
    struct Check;

    fn error(program: &Program) -> Option<DefinitionError> {
        program.check_definition().err()
    }

    #[test]
    fn a_name_that_no_object_can_begin_with_is_an_error() {
        let longest = "a-name-that-has-exactly-forty-characters";
        for name in ["lighting", "a", "v2-lighting", longest] {
            assert_eq!(error(&Program::new(name)), None);
        }
        let long = "a-name-that-has-exactly-forty-characterss";
        for name in ["", "Lighting", "light_ing", "2lights", "lights-", long] {
            let name_error = DefinitionError::Name(name.to_owned());
            assert_eq!(error(&Program::new(name)), Some(name_error));
        }
    }

    #[test]
    fn a_second_kind_or_subcommand_with_a_name_is_an_error() {
        let lamps = || Operator::of(Audience::Tenants, lamps);
        let cellars = Operator::of(Audience::Administrators, cellars);
        let lighting = || Program::new("lighting").operator(lamps());
        assert_eq!(error(&lighting().operator(cellars)), None);
        let kind = DefinitionError::Kind {
            kind: "Lamp".to_owned(),
            first: "example.com",
            second: "example.com",
        };
        assert_eq!(error(&lighting().operator(lamps())), Some(kind));
        let again = lighting().subcommand(|_: &Check| ExitCode::SUCCESS);
        let subcommand = DefinitionError::Subcommand("check".to_owned());
        assert_eq!(error(&again), Some(subcommand));
    }
}
