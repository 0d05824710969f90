//! Names of the objects of an installation. A release of the Helm chart chooses them; the arguments of its controller
//! contain those that the controller must know.

use lockstep_manifests::names::Names;

/// Names in the arguments of a controller. Those that are not given are those of the manifests.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct InstalledNameArgs {
    #[arg(long, hide = true)]
    leader_election_id: Option<String>,
    #[arg(long, hide = true)]
    tls_secret: Option<String>,
    #[arg(long, hide = true)]
    webhook_service: Option<String>,
}

/// Names of the objects of an installation.
#[derive(Clone, Debug)]
pub(crate) struct InstalledNames {
    manifests: Names,
    lease: String,
    tls_secret: String,
    webhook_service: String,
}

impl InstalledNames {
    /// Returns the names of an installation, whose manifests have the names `manifests`.
    pub(crate) fn new(args: InstalledNameArgs, manifests: Names) -> Self {
        let lease = args.leader_election_id;
        Self {
            lease: lease.unwrap_or_else(|| manifests.lease.clone()),
            tls_secret: args
                .tls_secret
                .unwrap_or_else(|| manifests.tls_secret.clone()),
            webhook_service: args
                .webhook_service
                .unwrap_or_else(|| manifests.service.clone()),
            manifests,
        }
    }

    /// Returns the names in the manifests.
    pub(crate) fn manifests(&self) -> &Names {
        &self.manifests
    }

    /// Returns the name of the Lease for leader election.
    pub(crate) fn lease(&self) -> &str {
        &self.lease
    }

    /// Returns the name of the Secret with the webhook's certificates.
    pub(crate) fn tls_secret(&self) -> &str {
        &self.tls_secret
    }

    /// Returns the name of the webhook's Service.
    pub(crate) fn webhook_service(&self) -> &str {
        &self.webhook_service
    }

    /// Returns the name of the Deployment, and of most of the other objects.
    pub(crate) fn full_name(&self) -> &str {
        let suffix = &self.manifests.lease[self.manifests.program.len()..];
        let full = self.lease.strip_suffix(suffix);
        full.unwrap_or(&self.manifests.program)
    }

    /// Returns the name that an object of the manifests or of the controller has in this installation.
    pub(crate) fn installed(&self, in_manifests: &str) -> String {
        if in_manifests == self.manifests.tls_secret {
            self.tls_secret.clone()
        } else if in_manifests == self.manifests.lease {
            self.lease.clone()
        } else {
            self.of(in_manifests)
        }
    }

    /// Returns the name that an object of the manifests has in this installation.
    pub(crate) fn of(&self, in_manifests: &str) -> String {
        match in_manifests.strip_prefix(&self.manifests.program) {
            Some(suffix) if suffix.is_empty() || suffix.starts_with('-') => {
                format!("{}{suffix}", self.full_name())
            }
            _ => in_manifests.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_release_begin_with_its_full_name() {
        let args = InstalledNameArgs {
            leader_election_id: Some("prod-lockstep-controller".to_owned()),
            tls_secret: Some("issued".to_owned()),
            ..InstalledNameArgs::default()
        };
        let installed = InstalledNames::new(args, Names::new("lockstep", "lockstep.dev"));
        assert_eq!(installed.full_name(), "prod-lockstep");
        assert_eq!(installed.webhook_service(), "lockstep-webhook");
        assert_eq!(installed.of("lockstep"), "prod-lockstep");
        assert_eq!(
            installed.of("lockstep-secret-reader"),
            "prod-lockstep-secret-reader"
        );
        assert_eq!(installed.of("lockstepper"), "lockstepper");
        assert_eq!(
            installed.of("clouddatabases.database.example.com"),
            "clouddatabases.database.example.com"
        );
    }
}
