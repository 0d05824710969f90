//! Option for the installed kinds.

use anyhow::bail;

use crate::operator::registration::{KindDefinition, Registration};
use crate::registry::{Registry, SelectedKinds};

/// Option for the installed kinds.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Scope")]
pub(crate) struct KindArgs {
    /// Kinds to install, comma-separated: `*` selects the default kinds, a name adds a kind, and `-` before a name
    /// excludes it.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    kinds: Vec<String>,
}

impl KindArgs {
    pub(crate) fn choose<'a>(&self, registry: &'a Registry) -> anyhow::Result<SelectedKinds<'a>> {
        let kinds: Vec<_> = registry.kinds().map(|(_, registered)| registered).collect();
        for given in &self.kinds {
            let name = given.strip_prefix('-').unwrap_or(given);
            if given != "*" && !kinds.iter().any(|registered| registered.kind == name) {
                let known: Vec<_> = kinds.iter().map(|registered| registered.kind).collect();
                bail!(
                    "`--kinds` has the unknown kind '{name}'; allowed are `*`, {}, and these with a leading `-`",
                    known.join(", ")
                );
            }
        }
        registry.select(|operator, registered| self.has(operator, registered))
    }

    fn has(&self, operator: &Registration, registered: KindDefinition) -> bool {
        let is_given = |name: &str| self.kinds.iter().any(|given| given == name);
        let is_wanted =
            is_given(registered.kind) || is_given("*") && operator.definition.by_default;
        is_wanted && !is_given(&format!("-{}", registered.kind))
    }

    /// Returns the command-line argument, or `None` for the default.
    pub(crate) fn argument(&self) -> Option<String> {
        (self.kinds != ["*"]).then(|| format!("--kinds={}", self.kinds.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::operator::Operator;
    use crate::operator::audience::Audience;
    use crate::operator::test_kinds::{cellars, lamps};

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        kinds: KindArgs,
    }

    fn registry() -> Registry {
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
        let cellars = Operator::of(Audience::Administrators, cellars)
            .rbac_rules([rule])
            .only_when_named();
        Registry {
            operators: vec![
                Operator::of(Audience::Tenants, lamps).into(),
                cellars.into(),
            ],
            ..Registry::default()
        }
    }

    fn kinds(arguments: &[&str]) -> KindArgs {
        Options::parse_from([&["lockstep"], arguments].concat()).kinds
    }

    fn chosen(arguments: &[&str]) -> Result<Vec<String>, String> {
        let registry = registry();
        let chosen = kinds(arguments).choose(&registry);
        let validators = chosen.map_err(|error| error.to_string())?.validators();
        Ok(validators
            .iter()
            .map(|kind| kind.kind().to_owned())
            .collect())
    }

    #[test]
    fn kinds_are_installed_by_default_or_by_name_and_any_kind_can_be_excluded() {
        let is =
            |kinds: &[&str]| Ok::<_, String>(kinds.iter().map(|kind| (*kind).to_owned()).collect());
        assert_eq!(chosen(&[]), is(&["Lamp"]));
        assert_eq!(chosen(&["--kinds=*,Cellar"]), is(&["Cellar", "Lamp"]));
        assert_eq!(chosen(&["--kinds", "Cellar"]), is(&["Cellar"]));
        assert_eq!(chosen(&["--kinds", "-Lamp,*"]), is(&[]));
        let error = chosen(&["--kinds=Lump"]).expect_err("no such kind");
        assert!(
            error.contains("'Lump'") && error.contains("Lamp, Cellar"),
            "{error}"
        );
    }

    #[test]
    fn an_operator_whose_kinds_are_not_installed_needs_no_access() {
        let registry = registry();
        let access = |arguments: &[&str]| {
            let chosen = kinds(arguments).choose(&registry).expect("known kinds");
            (chosen.rbac_rules().len(), chosen.cluster_scoped_kind())
        };
        assert_eq!(access(&[]), (0, None));
        assert_eq!(access(&["--kinds=*,Cellar"]), (1, Some("Cellar")));
    }
}
