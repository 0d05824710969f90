//! External IDs that annotations of Namespaces set. Each serves one Namespace: a role demands it in its trust policy, so a second
//! Namespace with the same one could use the roles of the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockstep_cloud_database_api::EXTERNAL_ID;
use lockstep_controller::ReconcileError;

use crate::aws::access::NamespaceAccess;

/// Time after which an object looks again if its Namespace has the external ID alone. No call to AWS is made for it.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Namespaces that use external IDs of annotations. It is shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExternalIds {
    /// UIDs of the Namespaces, by external ID.
    holders: Arc<Mutex<HashMap<String, String>>>,
}

impl ExternalIds {
    /// Takes the external ID of a Namespace for it.
    ///
    /// `all` are the Namespaces with the same one, among them this. The first that takes it keeps it for as long as it has it. A
    /// process that has just started knows the first by its objects: their status records the external ID (`is_recorded`).
    ///
    /// # Errors
    ///
    /// Another Namespace has taken it, or may have.
    pub(crate) fn take(
        &self,
        namespace: &NamespaceAccess,
        all: &[Arc<NamespaceAccess>],
        is_recorded: bool,
    ) -> Result<(), ReconcileError> {
        let Some(external_id) = namespace.own_external_id() else {
            return Ok(());
        };
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = holders.get(external_id);
        let holder = holder.filter(|uid| all.iter().any(|it| it.uid() == uid.as_str()));
        let is_free = holder.is_none() && (is_recorded || all.len() <= 1);
        if is_free || holder.is_some_and(|uid| uid == namespace.uid()) {
            holders.insert(external_id.to_owned(), namespace.uid().to_owned());
            return Ok(());
        }
        let others = all.iter().filter(|it| it.uid() != namespace.uid());
        let mut others: Vec<_> = others.map(|it| format!("'{}'", it.name())).collect();
        others.sort_unstable();
        let error = ReconcileError::Permanent {
            reason: "ExternalIdInUse",
            message: format!(
                "the external ID '{external_id}' is also the one of the Namespace {}, whose roles this Namespace must not use; AWS was not called. An administrator has to give one of them another value in the annotation {EXTERNAL_ID}, and in the trust policies of its roles",
                others.join(", ")
            ),
        };
        Err(error.requeue_after(AGAIN_AFTER))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str) -> Arc<NamespaceAccess> {
        Arc::new(NamespaceAccess::of(&json!({"metadata": {
            "name": name, "uid": name, "annotations": {EXTERNAL_ID: "lockstep-shop"},
        }})))
    }

    #[test]
    fn the_first_namespace_keeps_its_external_id_while_it_has_it() {
        let ids = ExternalIds::default();
        let (first, second) = (namespace("first"), namespace("second"));
        let alone = |one: &Arc<NamespaceAccess>| vec![one.clone()];
        let both = vec![second.clone(), first.clone()];
        assert!(ids.take(&first, &alone(&first), false).is_ok());
        let denied = ids.take(&second, &both, false).expect_err("another has it");
        assert_eq!(denied.reason(), "ExternalIdInUse");
        assert!(denied.to_string().contains("'first'"), "{denied}");
        // Also if its status says so, as a status can be copied.
        assert!(ids.take(&second, &both, true).is_err());
        assert!(ids.take(&first, &both, false).is_ok());
        assert!(ids.take(&second, &alone(&second), false).is_ok());
        assert!(ids.take(&first, &both, false).is_err());
    }

    #[test]
    fn a_process_that_has_just_started_knows_the_first_by_its_objects() {
        let ids = ExternalIds::default();
        let (first, second) = (namespace("first"), namespace("second"));
        let both = vec![second.clone(), first.clone()];
        for one in [&first, &second] {
            let denied = ids.take(one, &both, false);
            assert_eq!(denied.expect_err("unknown").reason(), "ExternalIdInUse");
        }
        assert!(ids.take(&first, &both, true).is_ok());
        assert!(
            ids.take(&first, &both, false).is_ok(),
            "a new object of the first"
        );
        assert!(ids.take(&second, &both, false).is_err());
    }
}
