//! How far the loop looks.

use anyhow::{bail, ensure};
use shared_validation::Rulesets;

/// Where objects are looked after.
#[derive(Clone, clap::Args)]
pub(crate) struct ScopeArgs {
    /// Look after the objects in these namespaces only, with Roles in them and no right beyond. It runs in the
    /// first. There is no gate then, nor does anything of the cluster's own get written.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    namespaces: Vec<String>,
}

impl ScopeArgs {
    /// The namespaces, each once; none stands for all. Of kinds that live in none there is nothing there.
    pub(crate) fn namespaces(&self, rulesets: &Rulesets) -> anyhow::Result<&[String]> {
        for (at, name) in self.namespaces.iter().enumerate() {
            ensure!(!name.is_empty(), "`--namespaces` has an empty name");
            if self.namespaces[..at].contains(name) {
                bail!("`--namespaces` has `{name}` twice");
            }
        }
        let mut of_the_cluster = rulesets
            .iter()
            .filter(|ruleset| ruleset.crd()["spec"]["scope"] == "Cluster");
        if let Some(ruleset) = of_the_cluster.next()
            && !self.namespaces.is_empty()
        {
            let kind = ruleset.kind();
            bail!(
                "`{kind}` lives in no namespace: leave it out with `--kinds='*,-{kind}'`, or leave `--namespaces` out"
            );
        }
        Ok(&self.namespaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_named_once() {
        let given = |names: &[&str]| {
            let namespaces = names.iter().map(ToString::to_string).collect();
            let scope = ScopeArgs { namespaces };
            let taken = scope.namespaces(&Rulesets::default()).map(<[_]>::len);
            taken.map_err(|error| error.to_string())
        };
        assert_eq!(given(&[]), Ok(0));
        assert_eq!(given(&["a", "b"]), Ok(2));
        assert_eq!(
            given(&["a", "a"]),
            Err("`--namespaces` has `a` twice".to_owned())
        );
        assert_eq!(
            given(&[""]),
            Err("`--namespaces` has an empty name".to_owned())
        );
    }
}
