//! Deletion policy: whether the instance and its data are deleted with the object.

use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::{DeletionPolicy, ManagementPolicy};
use lockstep_controller::{DeletionEffect, FinalizeRequest};
use serde::Deserialize;
use serde_json::Value;

/// Returns the deletion policy to apply: the safer of the last validated and the current one, so that an edit that
/// bypassed the webhook just before the deletion does not destroy data. If neither can be parsed, returns the default.
pub(crate) fn safer_policy(deleted: &FinalizeRequest<'_>) -> DeletionPolicy {
    let last_validated = deleted
        .last_validated
        .and_then(|last_validated| last_validated.get("spec.deletionPolicy"));
    let present = deleted.object.pointer("/spec/deletionPolicy");
    let readable = [last_validated, present]
        .into_iter()
        .flatten()
        .filter_map(read);
    readable
        .max_by_key(|policy| safety(*policy))
        .unwrap_or_default()
}

/// Returns true if the deletion protection of the instance may be disabled in RDS: it is explicitly false in the
/// object, and either the object is valid or the last validated value is not true.
pub(crate) fn lifts_protection(deleted: &FinalizeRequest<'_>) -> bool {
    let last_validated = deleted
        .last_validated
        .and_then(|last_validated| last_validated.get("spec.deletionProtection"));
    let present = deleted.object.pointer("/spec/deletionProtection");
    present == Some(&Value::Bool(false))
        && (deleted.is_valid || last_validated != Some(&Value::Bool(true)))
}

/// Returns true if the instance is only observed, or was when the object was last valid: an edit that bypassed the webhook
/// just before the deletion does not lead to the deletion of the instance.
pub(crate) fn is_observed(deleted: &FinalizeRequest<'_>) -> bool {
    let last_validated = deleted
        .last_validated
        .and_then(|last_validated| last_validated.get("spec.managementPolicy"));
    let present = deleted.object.pointer("/spec/managementPolicy");
    let policies = [last_validated, present].into_iter().flatten();
    let mut policies = policies.filter_map(|policy| ManagementPolicy::deserialize(policy).ok());
    policies.any(|policy| policy == ManagementPolicy::Observe)
}

/// Returns the time at which the deletion of an object began, in seconds since the Unix epoch.
pub(crate) fn deletion_began(deleted: &FinalizeRequest<'_>) -> i64 {
    let time = deleted.object.pointer("/metadata/deletionTimestamp");
    let time = time.and_then(Value::as_str);
    let time = time.and_then(|time| time.parse::<Timestamp>().ok());
    time.map_or(0, Timestamp::as_second)
}

/// Returns what the finalization of an object does to its instance.
pub(crate) fn effect(deleted: &FinalizeRequest<'_>) -> DeletionEffect {
    if is_observed(deleted) {
        return DeletionEffect {
            description: "the RDS instance is retained, because it is only observed".to_owned(),
            is_blocked: false,
        };
    }
    let policy = safer_policy(deleted);
    // A retained instance is not touched, so its protection does not matter.
    let is_blocked = policy != DeletionPolicy::Retain && !lifts_protection(deleted) && {
        let protected = deleted.object.pointer("/spec/deletionProtection");
        let last_validated = deleted.last_validated;
        let last_validated =
            last_validated.and_then(|last_validated| last_validated.get("spec.deletionProtection"));
        [protected, last_validated].contains(&Some(&Value::Bool(true)))
    };
    let description = match policy {
        _ if is_blocked => {
            "the RDS instance has deletion protection: set `spec.deletionProtection` to false"
        }
        DeletionPolicy::Snapshot => "the RDS instance is deleted after a final snapshot",
        DeletionPolicy::Retain => "the RDS instance is retained",
        DeletionPolicy::Delete => "the RDS instance is deleted with all its data",
    };
    DeletionEffect {
        description: description.to_owned(),
        is_blocked,
    }
}

fn read(value: &Value) -> Option<DeletionPolicy> {
    DeletionPolicy::deserialize(value).ok()
}

fn safety(policy: DeletionPolicy) -> u8 {
    match policy {
        DeletionPolicy::Delete => 0,
        DeletionPolicy::Snapshot => 1,
        DeletionPolicy::Retain => 2,
    }
}

#[cfg(test)]
mod tests {
    use lockstep_controller::{Children, RelatedObjects};

    use super::*;
    use lockstep_shared_validation::LastValidated;
    use serde_json::json;

    fn decide(last_validated: Option<&str>, present: &Value) -> DeletionPolicy {
        let last_validated = last_validated.map(|policy| LastValidated {
            generation: 1,
            values: [("spec.deletionPolicy".to_owned(), json!(policy))].into(),
            ..LastValidated::default()
        });
        let object = json!({"spec": {"deletionPolicy": present}});
        safer_policy(&FinalizeRequest {
            object: &object,
            last_validated: last_validated.as_ref(),
            is_valid: false,
            children: Children::default(),
            related: RelatedObjects::default(),
        })
    }

    #[test]
    fn the_safer_policy_wins_whether_it_is_the_current_one_or_not() {
        assert_eq!(
            decide(Some("Snapshot"), &json!("Delete")),
            DeletionPolicy::Snapshot
        );
        assert_eq!(
            decide(Some("Delete"), &json!("Retain")),
            DeletionPolicy::Retain
        );
        assert_eq!(
            decide(Some("Delete"), &json!("Delete")),
            DeletionPolicy::Delete
        );
        assert_eq!(decide(None, &json!("Delete")), DeletionPolicy::Delete);
    }

    #[test]
    fn the_effect_names_the_policy_and_a_protection_that_blocks_the_deletion() {
        let effect = |spec: &Value| {
            let object = json!({"spec": spec});
            let effect = effect(&FinalizeRequest {
                object: &object,
                last_validated: None,
                is_valid: true,
                children: Children::default(),
                related: RelatedObjects::default(),
            });
            (effect.description, effect.is_blocked)
        };
        let (described, is_blocked) = effect(&json!({"deletionPolicy": "Delete"}));
        assert!(described.contains("all its data") && !is_blocked);
        let (described, is_blocked) = effect(&json!({}));
        assert!(described.contains("final snapshot") && !is_blocked);
        let protected = json!({"deletionPolicy": "Delete", "deletionProtection": true});
        let (described, is_blocked) = effect(&protected);
        assert!(described.contains("deletionProtection") && is_blocked);
        let retained = json!({"deletionPolicy": "Retain", "deletionProtection": true});
        let (described, is_blocked) = effect(&retained);
        assert!(described.contains("retained") && !is_blocked);
        let observed = json!({"managementPolicy": "Observe", "deletionPolicy": "Delete"});
        let (described, is_blocked) = effect(&observed);
        assert!(described.contains("observed") && !is_blocked);
    }

    #[test]
    fn an_instance_that_was_observed_before_an_edit_counts_as_observed() {
        let observed = |last_validated: Option<&str>, present: &Value| {
            let last_validated = last_validated.map(|policy| LastValidated {
                generation: 1,
                values: [("spec.managementPolicy".to_owned(), json!(policy))].into(),
                ..LastValidated::default()
            });
            let object = json!({"spec": {"managementPolicy": present}});
            is_observed(&FinalizeRequest {
                object: &object,
                last_validated: last_validated.as_ref(),
                is_valid: false,
                children: Children::default(),
                related: RelatedObjects::default(),
            })
        };
        assert!(observed(Some("Observe"), &json!("Manage")));
        assert!(observed(Some("Manage"), &json!("Observe")));
        assert!(!observed(Some("Manage"), &json!("Manage")));
        assert!(!observed(None, &Value::Null));
    }

    #[test]
    fn an_invalid_policy_counts_as_absent() {
        assert_eq!(decide(Some("Retain"), &json!(7)), DeletionPolicy::Retain);
        assert_eq!(decide(None, &json!("Destroy")), DeletionPolicy::Snapshot);
    }

    #[test]
    fn protection_is_disabled_only_if_no_trusted_value_enables_it() {
        let lifts = |last_validated: Option<bool>, present: &Value| {
            let last_validated = last_validated.map(|protected| LastValidated {
                generation: 1,
                values: [("spec.deletionProtection".to_owned(), json!(protected))].into(),
                ..LastValidated::default()
            });
            let object = json!({"spec": {"deletionProtection": present}});
            lifts_protection(&FinalizeRequest {
                object: &object,
                last_validated: last_validated.as_ref(),
                is_valid: false,
                children: Children::default(),
                related: RelatedObjects::default(),
            })
        };
        assert!(lifts(None, &json!(false)));
        assert!(lifts(Some(false), &json!(false)));
        assert!(
            !lifts(Some(true), &json!(false)),
            "the edit may have bypassed the webhook"
        );
        assert!(!lifts(Some(false), &json!(true)));
        assert!(!lifts(None, &Value::Null));
        assert!(!lifts(None, &json!("no")));
    }
}
