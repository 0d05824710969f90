//! Choice of the names of a workload's cluster-scoped objects.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Api, Client, ResourceExt};
use lockstep_controller::{Children, OWNER_LABEL, ReconcileError};

use crate::owned::ClusterScopedNames;

/// Plain names that workloads of this process have, with the UID of the workload. Of two workloads with one name in two
/// namespaces, the first one gets it.
#[derive(Debug, Default)]
pub(crate) struct PlainNames(Mutex<HashMap<String, String>>);

impl PlainNames {
    /// Returns the names of a workload: the plain ones, unless another workload or another client has the first of them.
    ///
    /// # Errors
    ///
    /// The API server did not answer.
    pub(crate) async fn choose(
        &self,
        client: &Client,
        plain: [&str; 2],
        uid: &str,
        children: Children<'_>,
    ) -> Result<ClusterScopedNames, ReconcileError> {
        let roles = children.iter().filter(|child| {
            let types = child.types.as_ref();
            types.is_some_and(|types| types.kind == "ClusterRole")
        });
        let [name, _] = plain;
        match has_plain_names(roles.map(ResourceExt::name_any), plain) {
            Some(true) => return Ok(self.claim(name, uid)),
            Some(false) => return Ok(ClusterScopedNames::WithNamespace),
            None => {}
        }
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let existing = roles.get_metadata_opt(name).await;
        let existing = existing.map_err(|error| ReconcileError::Transient {
            reason: "ClusterRoleUnreadable",
            message: format!("the ClusterRole '{name}' cannot be read: {error}"),
        })?;
        let is_taken = existing.is_some_and(|role| {
            let label = role.labels().get(OWNER_LABEL);
            let mut owners = role.owner_references().iter();
            // The operator of kaasops sets an owner reference, although the owner is in a namespace.
            label.is_none_or(|owner| owner != uid) && !owners.any(|owner| owner.uid == uid)
        });
        Ok(if is_taken {
            ClusterScopedNames::WithNamespace
        } else {
            self.claim(name, uid)
        })
    }

    /// Gives back the name of a deleted workload.
    pub(crate) fn release(&self, uid: &str) {
        self.names().retain(|_, owner| owner != uid);
    }

    fn claim(&self, plain: &str, uid: &str) -> ClusterScopedNames {
        let mut names = self.names();
        let owner = names
            .entry(plain.to_owned())
            .or_insert_with(|| uid.to_owned());
        if owner == uid {
            ClusterScopedNames::Plain
        } else {
            ClusterScopedNames::WithNamespace
        }
    }

    fn names(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the existing `ClusterRole`s of a workload have plain names. None if there are none.
fn has_plain_names(mut roles: impl Iterator<Item = String>, plain: [&str; 2]) -> Option<bool> {
    let role = roles.next()?;
    Some(plain.contains(&role.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_keeps_the_names_that_its_objects_have() {
        let plain = ["logs-aggregator", "logs-event-collector"];
        for (role, expected) in [
            (None, None),
            (Some("logs-aggregator"), Some(true)),
            (Some("logs-event-collector"), Some(true)),
            (Some("team-logs-event-collector"), Some(false)),
        ] {
            let roles = role.map(String::from).into_iter();
            assert_eq!(has_plain_names(roles, plain), expected, "{role:?}");
        }
    }

    #[test]
    fn one_of_two_workloads_gets_the_plain_name_until_it_is_deleted() {
        let names = PlainNames::default();
        for (uid, expected) in [
            ("1", ClusterScopedNames::Plain),
            ("2", ClusterScopedNames::WithNamespace),
            ("1", ClusterScopedNames::Plain),
        ] {
            assert_eq!(names.claim("logs-agent", uid), expected);
        }
        assert_eq!(names.claim("other-agent", "2"), ClusterScopedNames::Plain);
        names.release("1");
        assert_eq!(names.claim("logs-agent", "2"), ClusterScopedNames::Plain);
    }
}
