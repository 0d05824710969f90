//! Extensions of rulesets: what the Rust rules of an operator read besides the object.

use clap::{ArgMatches, Command};

use crate::operator::extension_files::RulesetExtension;

/// Extension of the rulesets of an operator, with its arguments.
pub(crate) struct ExtensionDefinition {
    /// Adds the arguments to a subcommand.
    pub(crate) add_arguments: fn(Command) -> Command,
    /// Creates the extension for a subcommand with these arguments.
    pub(crate) create: CreateExtensionFn,
}

/// Creates an extension for a subcommand with its arguments.
pub(crate) type CreateExtensionFn =
    Box<dyn Fn(&str, &ArgMatches) -> anyhow::Result<RulesetExtension> + Send + Sync>;

/// Subcommands that have the arguments of the extensions: those that validate objects.
pub(crate) const VALIDATING: [&str; 4] = ["check", "webhook", "controller", "audit"];

impl ExtensionDefinition {
    /// Creates the extension for a subcommand. One that has no arguments of extensions gets their defaults.
    pub(crate) fn create(
        &self,
        command: &str,
        arguments: &ArgMatches,
    ) -> anyhow::Result<RulesetExtension> {
        if VALIDATING.contains(&command) {
            return (self.create)(command, arguments);
        }
        let defaults = (self.add_arguments)(Command::new("defaults").no_binary_name(true));
        let none: [&str; 0] = [];
        (self.create)(command, &defaults.try_get_matches_from(none)?)
    }
}
