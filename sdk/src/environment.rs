//! Name and operators of a program, as its subcommands receive them.

use lockstep_manifests::names::Names;

use crate::registry::Registry;

/// Name and operators of a program. Every subcommand receives it.
pub(crate) struct Environment {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) webhook_domain: Option<&'static str>,
    pub(crate) registry: Registry,
}

impl Environment {
    /// Returns the name of the executable file.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the version of the program.
    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    /// Returns the names of the objects of an installation. Without another domain, the names of the webhooks end with the
    /// group of the first kind, which belongs to the author.
    pub(crate) fn names(&self) -> Names {
        let group = self.registry.kinds().next().map(|(_, kind)| kind.group);
        let domain = self.webhook_domain.or(group);
        Names::new(self.name, domain.unwrap_or(self.name))
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }
}

#[cfg(test)]
impl Environment {
    /// Returns the environment of a program without operators.
    pub(crate) fn sample() -> Self {
        Self {
            name: "lockstep",
            version: "1.2.3",
            webhook_domain: None,
            registry: Registry::default(),
        }
    }
}
