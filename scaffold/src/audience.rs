//! Audience of a new kind.

use clap::ValueEnum;

/// Users who may create objects of a kind, as in `lockstep_sdk::Audience`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Audience {
    /// Users with the built-in role `edit` or `admin` in a namespace.
    Tenants,
    /// Users with the role `PROGRAM-administrator`, which an administrator binds.
    #[default]
    Administrators,
}

impl Audience {
    /// Returns the variant as code writes it.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Self::Tenants => "Audience::Tenants",
            Self::Administrators => "Audience::Administrators",
        }
    }

    /// Returns a text of the templates with this audience instead of the default one.
    pub(crate) fn apply(self, template: &str) -> String {
        template.replace(Self::default().variant(), self.variant())
    }
}
