//! Subcommands that an operator adds to the program.

use std::process::ExitCode;

use clap::{ArgMatches, Command, Parser};

/// Subcommand with the function that runs it.
pub(crate) struct Subcommand {
    pub(crate) command: Command,
    run: RunFn,
}

/// Runs the subcommand with its arguments.
type RunFn = Box<dyn Fn(&ArgMatches) -> Result<ExitCode, clap::Error> + Send + Sync>;

impl Subcommand {
    /// Creates a subcommand with the name and the arguments of a parser.
    pub(crate) fn new<A: Parser + 'static>(run: fn(&A) -> ExitCode) -> Self {
        Self {
            command: A::command(),
            run: Box::new(move |matches| A::from_arg_matches(matches).map(|args| run(&args))),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.command.get_name()
    }

    pub(crate) fn run(&self, matches: &ArgMatches) -> Result<ExitCode, clap::Error> {
        (self.run)(matches)
    }
}
