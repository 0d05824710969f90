//! Identity of an object's instance: its identifier in RDS, which follows from the spec and the UID of the object alone, so
//! that it is the same in each step, also if the status is lost.

use lockstep_cloud_database_api::CloudDatabase;
use lockstep_controller::{FinalizeRequest, ReconcileError};
use lockstep_shared_validation::LastValidated;
use serde_json::Value;

/// Beginning of the identifiers that follow from UIDs.
const PREFIX: &str = "cdb-";

/// Path of the identifier of an adopted instance.
const ADOPTED: &str = "spec.adopt.identifier";

/// Identity of an object's instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Identifier in RDS: at most 63 lowercase letters, digits and hyphens, starting with a letter.
    pub(crate) id: String,
    /// If true, the object takes over an existing instance, and none is created for it.
    pub(crate) is_adopted: bool,
}

impl Identity {
    /// Returns the identity of an object's instance.
    pub(crate) fn of(object: &CloudDatabase) -> Result<Self, ReconcileError> {
        let adopt = object.spec.adopt.as_ref();
        let adopted = adopt.map(|adopt| adopt.identifier.as_str());
        Self::new(object.metadata.uid.as_deref(), adopted)
    }

    /// Returns the identity of the instance of an object that is being deleted.
    pub(crate) fn of_deleted(deleted: &FinalizeRequest<'_>) -> Result<Self, ReconcileError> {
        Self::of_stored(deleted.object, deleted.last_validated)
    }

    /// Returns the identity of the instance of an object that may be invalid: the last validated identifier takes precedence
    /// over the present one.
    pub(crate) fn of_stored(
        object: &Value,
        last_validated: Option<&LastValidated>,
    ) -> Result<Self, ReconcileError> {
        let last_validated = last_validated.and_then(|validated| validated.get(ADOPTED));
        let present = object.pointer("/spec/adopt/identifier");
        let adopted = [last_validated, present];
        let adopted = adopted.into_iter().flatten().find_map(Value::as_str);
        let uid = object.pointer("/metadata/uid");
        Self::new(uid.and_then(Value::as_str), adopted)
    }

    fn new(uid: Option<&str>, adopted: Option<&str>) -> Result<Self, ReconcileError> {
        let id = match (adopted, uid) {
            (Some(adopted), _) => adopted.to_lowercase(),
            (None, Some(uid)) if !uid.is_empty() => format!("{PREFIX}{}", uid.to_lowercase()),
            (None, _) => {
                return Err(ReconcileError::Permanent {
                    reason: "NoUid",
                    message: "the object has no UID".to_owned(),
                });
            }
        };
        Ok(Self {
            id,
            is_adopted: adopted.is_some(),
        })
    }
}

/// Returns the UID of the object whose instance has an identifier, if that follows from it.
pub(crate) fn uid_of(id: &str) -> Option<&str> {
    id.strip_prefix(PREFIX)
}

#[cfg(test)]
mod tests {
    use lockstep_controller::{Children, RelatedObjects};
    use lockstep_shared_validation::LastValidated;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_identifier_is_the_adopted_one_or_contains_the_uid() {
        let id = |uid: Option<&str>, adopted: Option<&str>| {
            let identity = Identity::new(uid, adopted).ok();
            identity.map(|it| (it.id, it.is_adopted))
        };
        assert_eq!(id(Some("A1"), None), Some(("cdb-a1".to_owned(), false)));
        assert_eq!(
            id(Some("A1"), Some("orders")),
            Some(("orders".to_owned(), true))
        );
        assert_eq!(id(Some(""), None), None);
        assert_eq!(id(None, None), None);
    }

    #[test]
    fn an_edit_before_the_deletion_does_not_lead_to_another_instance() {
        let last_validated = LastValidated {
            generation: 1,
            values: [(ADOPTED.to_owned(), json!("orders"))].into(),
            ..LastValidated::default()
        };
        let object =
            json!({"metadata": {"uid": "1"}, "spec": {"adopt": {"identifier": "billing"}}});
        let id = |last_validated: Option<&LastValidated>| {
            let identity = Identity::of_deleted(&FinalizeRequest {
                object: &object,
                last_validated,
                is_valid: true,
                children: Children::default(),
                related: RelatedObjects::default(),
            });
            identity.expect("an identity").id
        };
        assert_eq!(id(Some(&last_validated)), "orders");
        assert_eq!(id(None), "billing");
    }
}
