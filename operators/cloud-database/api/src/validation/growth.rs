//! Rules on changes of the size of the storage.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::spec::{ApplyChanges, CloudDatabase};

const MODIFY: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_ModifyDBInstance.html";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "storage-growth-step",
            description: "Size and IOPS should grow by at least 10 %: RDS rejects a smaller growth, or increases it.",
            severity: Severity::Warning,
            reference: MODIFY,
            fields: &["spec.storage.iops", "spec.storage.sizeGib"],
            validate: step,
        },
        Rule {
            id: "storage-shrink",
            description: "The storage must not be decreased, unless RDS has not allocated the old size: it has rejected it, or applies it in the maintenance window.",
            severity: Severity::Error,
            reference: MODIFY,
            fields: &["spec.storage.sizeGib"],
            validate: shrink,
        },
    ]
}

/// Name of the size in `status.pendingModifications`.
const SIZE: &str = "storage.sizeGib";

/// A size that RDS has refused, for example because of a quota, can be taken back: the instance has a smaller one. So can a
/// growth that waits for the maintenance window: the controller cancels it.
fn shrink(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let Some(old) = context.old else {
        return;
    };
    let after = context.object.spec.storage.size_gib;
    if after >= old.spec.storage.size_gib {
        return;
    }
    // A manifest has no status, but the stored object that it changes has one.
    let status = old.status.as_ref().or(context.object.status.as_ref());
    // What RDS has accepted is allocated soon.
    let is_pending =
        status.is_some_and(|status| status.pending_modifications.iter().any(|it| it == SIZE));
    let allocated = status.and_then(|status| status.allocated_storage_gib);
    let accepted = status.and_then(|status| status.accepted_storage_gib);
    // IOPS, throughput or another type that wait with it are not taken back.
    let is_alone = status.is_some_and(|status| {
        let mut pending = status.pending_modifications.iter();
        status.phase.as_deref() == Some("available")
            && !pending.any(|it| it.starts_with("storage.") && it != SIZE)
    });
    let waits = is_pending && old.spec.apply_changes == ApplyChanges::MaintenanceWindow;
    let least = match allocated {
        // Not a growth by storage autoscaling.
        Some(allocated) if waits && is_alone && accepted > Some(allocated) => Some(allocated),
        Some(allocated) if !is_pending => Some(accepted.map_or(allocated, |it| it.max(allocated))),
        _ => None,
    };
    let detail = match least {
        Some(least) if after >= least => return,
        Some(least) => format!(
            "must not be decreased: RDS cannot shrink storage; set at least {least}, which RDS has accepted"
        ),
        None => {
            "must not be decreased: RDS cannot shrink storage; restore the old value".to_owned()
        }
    };
    diagnostics.invalid("spec.storage.sizeGib", after, detail);
}

fn step(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let Some(old) = context.old else {
        return;
    };
    // Storage autoscaling may have increased the storage beyond the size of the spec.
    let status = old.status.as_ref().or(context.object.status.as_ref());
    let allocated = status.and_then(|status| status.allocated_storage_gib);
    let (old, new) = (&old.spec.storage, &context.object.spec.storage);
    // With another type, the values are new ones.
    if old.storage_type != new.storage_type {
        return;
    }
    let mut grows = |field: &str, before: i32, after: i32| {
        let least = (i64::from(before) * 11 + 9) / 10;
        if i64::from(after) < least {
            let detail = format!(
                "is less than 10 % above {before}: RDS rejects this growth, increases it, or has allocated as much; set at least {least}"
            );
            diagnostics.invalid(field, after, detail);
        }
    };
    if new.size_gib > old.size_gib {
        let before = allocated.map_or(old.size_gib, |it| it.max(old.size_gib));
        grows("spec.storage.sizeGib", before, new.size_gib);
    }
    if let (Some(before), Some(after)) = (old.iops, new.iops)
        && after > before
    {
        grows("spec.storage.iops", before, after);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use lockstep_shared_validation::{ValidationRequest, Validator};

    fn object(apply_changes: &str, size: i32) -> Value {
        json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "namespace": "shop"},
            "spec": {
                "engine": "postgres", "instanceClass": "db.t4g.micro",
                "storage": {"sizeGib": size}, "applyChanges": apply_changes,
                "credentials": {"username": "app", "secretName": "s"},
            },
        })
    }

    /// Returns the messages about a change of the size from 100 GiB.
    fn messages(size: i32, status: &Value) -> Vec<String> {
        messages_of("Immediately", size, status)
    }

    fn messages_of(apply_changes: &str, size: i32, status: &Value) -> Vec<String> {
        let object = |size: i32| {
            let mut object = object(apply_changes, size);
            object["status"] = status.clone();
            object
        };
        let ruleset = crate::ruleset().expect("a ruleset");
        let (old, new) = (object(100), object(size));
        let result = ruleset.validate(&ValidationRequest::update(&new, &old));
        let errors = result.errors.iter();
        errors.map(|it| it.error.to_string()).collect()
    }

    #[test]
    fn a_growth_is_compared_with_what_autoscaling_has_allocated() {
        let warnings = |size: i32, allocated: i32| {
            let (mut old, mut new) = (object("Immediately", 100), object("Immediately", size));
            for object in [&mut old, &mut new] {
                object["status"] = json!({"allocatedStorageGib": allocated});
            }
            let ruleset = crate::ruleset().expect("a ruleset");
            let result = ruleset.validate(&ValidationRequest::update(&new, &old));
            let mut warnings = result.warnings.iter().map(|it| it.error.to_string());
            warnings.find(|it| it.contains("10 % above"))
        };
        assert_eq!(warnings(120, 100), None);
        let warning = warnings(120, 200).expect("a warning");
        assert!(warning.contains("set at least 220"), "{warning}");
        assert_eq!(warnings(220, 200), None);
        assert_eq!(warnings(100, 200), None, "it is not changed");
    }

    #[test]
    fn a_size_that_rds_has_not_allocated_can_be_taken_back() {
        let allocated = |size: i32| json!({"allocatedStorageGib": size});
        assert!(messages(50, &allocated(50)).is_empty());
        assert!(messages(60, &allocated(50)).is_empty());
        let below = messages(49, &allocated(50));
        assert!(below[0].contains("set at least 50"), "{below:?}");
        assert_eq!(messages(99, &allocated(100)).len(), 1);
        let accepted = json!({"allocatedStorageGib": 50, "acceptedStorageGib": 80});
        assert_eq!(messages(79, &accepted).len(), 1);
        assert!(messages(80, &accepted).is_empty());
        let earlier = json!({"allocatedStorageGib": 60, "acceptedStorageGib": 50});
        assert_eq!(messages(59, &earlier).len(), 1);
        let unknown = messages(50, &json!({}));
        assert!(unknown[0].contains("restore the old value"), "{unknown:?}");
        let pending =
            json!({"allocatedStorageGib": 50, "pendingModifications": ["storage.sizeGib"]});
        assert_eq!(messages(50, &pending).len(), 1);
        let waiting = json!({
            "allocatedStorageGib": 50, "acceptedStorageGib": 100,
            "pendingModifications": ["storage.sizeGib"], "phase": "available",
        });
        assert_eq!(messages(50, &waiting).len(), 1, "RDS applies it now");
        assert!(messages_of("MaintenanceWindow", 50, &waiting).is_empty());
        assert_eq!(messages_of("MaintenanceWindow", 49, &waiting).len(), 1);
        let mut changing = waiting.clone();
        changing["phase"] = json!("modifying");
        assert_eq!(messages_of("MaintenanceWindow", 50, &changing).len(), 1);
        let mut larger = waiting.clone();
        larger["pendingModifications"] = json!(["storage.sizeGib", "storage.iops"]);
        assert_eq!(messages_of("MaintenanceWindow", 50, &larger).len(), 1);
        // The size of the spec is one that RDS has refused since.
        let mut refused = waiting.clone();
        refused["acceptedStorageGib"] = json!(80);
        assert!(messages_of("MaintenanceWindow", 50, &refused).is_empty());
        // RDS increases the storage by itself.
        let own = json!({
            "allocatedStorageGib": 50, "acceptedStorageGib": 50, "phase": "available",
            "pendingModifications": ["storage.sizeGib"],
        });
        assert_eq!(messages_of("MaintenanceWindow", 50, &own).len(), 1);
        assert!(messages(110, &allocated(50)).is_empty());
    }
}
