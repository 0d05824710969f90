//! How far the loop looks.

use anyhow::{bail, ensure};

/// Where objects are looked after.
#[derive(Clone, clap::Args)]
pub(crate) struct InstallScopeArgs {
    /// Look after the objects in these namespaces only, with Roles in them and no right beyond. It runs in the
    /// first. There is no gate then, nor does anything of the cluster's own get written.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    watch_namespaces: Vec<String>,
    /// A gate and no loop, for kinds that another installation looks after: its CRDs, its objects and their
    /// statuses are left alone.
    #[arg(long, conflicts_with = "namespaces")]
    webhook_only: bool,
}

impl InstallScopeArgs {
    pub(crate) fn is_webhook_only(&self) -> bool {
        self.webhook_only
    }

    /// As an argument of the controller, where there is a gate and no loop.
    pub(crate) fn argument(&self) -> Option<String> {
        self.webhook_only.then(|| "--gate-only".to_owned())
    }

    /// The namespaces, each once; none stands for all. A kind that is, or makes, something beyond namespaces
    /// cannot be kept to some.
    pub(crate) fn namespaces(&self, beyond: Option<&str>) -> anyhow::Result<&[String]> {
        for (at, name) in self.watch_namespaces.iter().enumerate() {
            ensure!(!name.is_empty(), "`--namespaces` has an empty name");
            if self.watch_namespaces[..at].contains(name) {
                bail!("`--namespaces` has `{name}` twice");
            }
        }
        if let Some(kind) = beyond.filter(|_| !self.watch_namespaces.is_empty()) {
            bail!(
                "`{kind}`, or what its operator makes, lives in no namespace: leave it out with `--kinds='*,-{kind}'`, or leave `--namespaces` out"
            );
        }
        Ok(&self.watch_namespaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_named_once() {
        let given = |names: &[&str]| {
            let namespaces = names.iter().map(ToString::to_string).collect();
            let scope = InstallScopeArgs {
                watch_namespaces: namespaces,
                webhook_only: false,
            };
            let taken = scope.namespaces(None).map(<[_]>::len);
            taken.map_err(|error| error.to_string())
        };
        assert_eq!(given(&[]), Ok(0));
        assert_eq!(given(&["a", "b"]), Ok(2));
        assert_eq!(
            given(&["a", "a"]),
            Err("`--namespaces` has `a` twice".to_owned())
        );
        let namespaces = vec!["a".to_owned()];
        let scope = InstallScopeArgs {
            watch_namespaces: namespaces,
            webhook_only: false,
        };
        let error = scope.namespaces(Some("Wide")).map(drop);
        let error = error.expect_err("it is beyond").to_string();
        assert!(error.contains("--kinds='*,-Wide'"), "{error}");
        assert_eq!(
            given(&[""]),
            Err("`--namespaces` has an empty name".to_owned())
        );
    }
}
