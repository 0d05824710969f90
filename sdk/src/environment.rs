//! Name and operators of a program, as its subcommands receive them.

use crate::registry::Registry;

/// Name and operators of a program. Every subcommand receives it.
pub(crate) struct Environment {
    pub(crate) name: &'static str,
    pub(crate) registry: Registry,
}

impl Environment {
    /// Returns the name of the executable file.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }
}
