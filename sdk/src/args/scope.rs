//! Scope of an installation: the watched namespaces, and whether the controllers run.

use anyhow::{bail, ensure};

/// Options for the scope of an installation.
#[derive(Clone, clap::Args)]
pub(crate) struct InstallScopeArgs {
    /// Watch only these namespaces (comma-separated). The controller is installed in the first one and uses roles
    /// instead of cluster roles. The webhook is not installed and no cluster-scoped object is written. Default: all
    /// namespaces.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    watch_namespaces: Vec<String>,
    /// Run only the admission webhook. Use this if another installation owns the CRDs and reconciles the objects:
    /// the CRDs, the objects and their statuses are not modified.
    #[arg(long, conflicts_with = "watch_namespaces")]
    webhook_only: bool,
}

impl InstallScopeArgs {
    pub(crate) fn is_webhook_only(&self) -> bool {
        self.webhook_only
    }

    /// Returns the command-line argument for the controller if only the webhook runs.
    pub(crate) fn argument(&self) -> Option<String> {
        self.webhook_only.then(|| "--webhook-only".to_owned())
    }

    /// Returns the watched namespaces; empty for all. Fails if a name is empty or repeated, or if namespaces are
    /// given although a kind (`beyond`) is cluster-scoped or its operator creates cluster-scoped objects.
    pub(crate) fn namespaces(&self, beyond: Option<&str>) -> anyhow::Result<&[String]> {
        for (at, name) in self.watch_namespaces.iter().enumerate() {
            ensure!(
                !name.is_empty(),
                "`--watch-namespaces` contains an empty name"
            );
            if self.watch_namespaces[..at].contains(name) {
                bail!("`--watch-namespaces` contains `{name}` twice");
            }
        }
        if let Some(kind) = beyond.filter(|_| !self.watch_namespaces.is_empty()) {
            bail!(
                "`{kind}` is cluster-scoped or its operator creates cluster-scoped objects: exclude it with `--kinds='*,-{kind}'`, or omit `--watch-namespaces`"
            );
        }
        Ok(&self.watch_namespaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_and_cluster_scoped_kinds_are_rejected() {
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
            Err("`--watch-namespaces` contains `a` twice".to_owned())
        );
        let namespaces = vec!["a".to_owned()];
        let scope = InstallScopeArgs {
            watch_namespaces: namespaces,
            webhook_only: false,
        };
        let error = scope.namespaces(Some("Wide")).map(drop);
        let error = error.expect_err("the kind is cluster-scoped").to_string();
        assert!(error.contains("--kinds='*,-Wide'"), "{error}");
        assert_eq!(
            given(&[""]),
            Err("`--watch-namespaces` contains an empty name".to_owned())
        );
    }
}
