//! Scope of an installation: the watched namespaces, and whether the controllers run.

use anyhow::{bail, ensure};

/// Options for the scope of an installation.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Scope")]
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
    /// Run only the controller: there is no webhook, no certificate and no admission probe. The API server validates
    /// by the schema and the CEL rules of the CRD, and the controller suspends objects that violate other rules.
    #[arg(long, conflicts_with_all = ["watch_namespaces", "webhook_only"])]
    no_webhook: bool,
}

impl InstallScopeArgs {
    pub(crate) fn is_webhook_only(&self) -> bool {
        self.webhook_only
    }

    /// Returns true if the installation has a webhook. Webhook configurations are cluster-scoped, so there is none if
    /// only some namespaces are watched.
    pub(crate) fn has_webhook(&self) -> bool {
        !self.no_webhook && self.watch_namespaces.is_empty()
    }

    /// Returns the watched namespaces as they are given; empty for all.
    pub(crate) fn watched(&self) -> &[String] {
        &self.watch_namespaces
    }

    /// Returns true if no option is given.
    pub(crate) fn is_default(&self) -> bool {
        self.watch_namespaces.is_empty() && !self.webhook_only && !self.no_webhook
    }

    /// Returns true if the installation was requested without webhook.
    pub(crate) fn is_without_webhook(&self) -> bool {
        self.no_webhook
    }

    /// Returns the command-line argument for the controller if only the webhook, or no webhook, runs.
    pub(crate) fn argument(&self) -> Option<String> {
        let flags = [
            (self.webhook_only, "--webhook-only"),
            (self.no_webhook, "--no-webhook"),
        ];
        let mut given = flags.into_iter().filter(|(is_given, _)| *is_given);
        given.next().map(|(_, flag)| flag.to_owned())
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
                no_webhook: false,
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
            no_webhook: false,
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
