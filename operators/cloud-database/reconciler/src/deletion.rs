//! What a deletion destroys.

use cloud_database_rules::DeletionPolicy;
use controller::FinalizeRequest;
use serde::Deserialize;
use serde_json::Value;

/// The policy that a deletion follows: the safer of what was last accepted and what the object says
/// now, so that an unguarded edit just before the deletion destroys nothing. Without a readable one,
/// the default.
pub(crate) fn safer_policy(deleted: &FinalizeRequest<'_>) -> DeletionPolicy {
    let accepted = deleted
        .last_validated
        .and_then(|accepted| accepted.get("spec.deletionPolicy"));
    let present = deleted.object.pointer("/spec/deletionPolicy");
    let readable = [accepted, present].into_iter().flatten().filter_map(read);
    readable
        .max_by_key(|policy| safety(*policy))
        .unwrap_or_default()
}

/// Whether RDS may be told to lift its protection of the instance: the object says plainly that it
/// need not be protected, and either keeps every rule or has not been accepted as saying otherwise.
pub(crate) fn lifts_protection(deleted: &FinalizeRequest<'_>) -> bool {
    let accepted = deleted
        .last_validated
        .and_then(|accepted| accepted.get("spec.deletionProtection"));
    let present = deleted.object.pointer("/spec/deletionProtection");
    present == Some(&Value::Bool(false))
        && (deleted.is_valid || accepted != Some(&Value::Bool(true)))
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
    use controller::Children;

    use super::*;
    use serde_json::json;
    use shared_validation::LastValidated;

    fn decide(accepted: Option<&str>, present: &Value) -> DeletionPolicy {
        let accepted = accepted.map(|policy| LastValidated {
            generation: 1,
            values: [("spec.deletionPolicy".to_owned(), json!(policy))].into(),
            ..LastValidated::default()
        });
        let object = json!({"spec": {"deletionPolicy": present}});
        safer_policy(&FinalizeRequest {
            object: &object,
            last_validated: accepted.as_ref(),
            is_valid: false,
            children: Children::default(),
        })
    }

    #[test]
    fn the_safer_policy_wins_whichever_side_it_is_on() {
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
    fn an_unreadable_policy_counts_as_absent() {
        assert_eq!(decide(Some("Retain"), &json!(7)), DeletionPolicy::Retain);
        assert_eq!(decide(None, &json!("Destroy")), DeletionPolicy::Snapshot);
    }

    #[test]
    fn protection_is_lifted_only_where_nothing_speaks_for_it() {
        let lifts = |accepted: Option<bool>, present: &Value| {
            let accepted = accepted.map(|protected| LastValidated {
                generation: 1,
                values: [("spec.deletionProtection".to_owned(), json!(protected))].into(),
                ..LastValidated::default()
            });
            let object = json!({"spec": {"deletionProtection": present}});
            lifts_protection(&FinalizeRequest {
                object: &object,
                last_validated: accepted.as_ref(),
                is_valid: false,
                children: Children::default(),
            })
        };
        assert!(lifts(None, &json!(false)));
        assert!(lifts(Some(false), &json!(false)));
        assert!(
            !lifts(Some(true), &json!(false)),
            "edited without the gate, perhaps"
        );
        assert!(!lifts(Some(false), &json!(true)));
        assert!(!lifts(None, &Value::Null));
        assert!(!lifts(None, &json!("no")));
    }
}
