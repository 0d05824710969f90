//! Names of the objects of an installation. A release of the Helm chart chooses them; the arguments of its controller
//! contain those that the controller must know.

use lockstep_manifests::names;

/// Names in the arguments of a controller. The defaults are those of the kustomize base.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct InstalledNames {
    #[arg(long, hide = true, default_value = names::LEASE)]
    leader_election_id: String,
    #[arg(long, hide = true, default_value = names::TLS_SECRET)]
    tls_secret: String,
}

impl InstalledNames {
    /// Returns the name of the Lease for leader election.
    pub(crate) fn lease(&self) -> &str {
        &self.leader_election_id
    }

    /// Returns the name of the Secret with the webhook's certificates.
    pub(crate) fn tls_secret(&self) -> &str {
        &self.tls_secret
    }

    /// Returns the name of the Deployment, and of most of the other objects.
    pub(crate) fn full_name(&self) -> &str {
        let suffix = &names::LEASE[names::APP.len()..];
        let full = self.leader_election_id.strip_suffix(suffix);
        full.unwrap_or(names::APP)
    }

    /// Returns the name that an object of the kustomize base has in this installation.
    pub(crate) fn of(&self, in_base: &str) -> String {
        match in_base.strip_prefix(names::APP) {
            Some(suffix) if suffix.is_empty() || suffix.starts_with('-') => {
                format!("{}{suffix}", self.full_name())
            }
            _ => in_base.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_release_begin_with_its_full_name() {
        let installed = InstalledNames {
            leader_election_id: "prod-lockstep-controller".to_owned(),
            tls_secret: "issued".to_owned(),
        };
        assert_eq!(installed.full_name(), "prod-lockstep");
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
