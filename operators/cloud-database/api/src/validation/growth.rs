//! Rule on the growth of the storage.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::spec::CloudDatabase;

const MODIFY: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_ModifyDBInstance.html";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "storage-growth-step",
        description: "Size and IOPS should grow by at least 10 %: RDS rejects a smaller growth, or increases it.",
        severity: Severity::Warning,
        reference: MODIFY,
        fields: &["spec.storage.iops", "spec.storage.sizeGib"],
        validate: step,
    }]
}

fn step(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let Some(old) = context.old else {
        return;
    };
    let (old, new) = (&old.spec.storage, &context.object.spec.storage);
    // With another type, the values are new ones.
    if old.storage_type != new.storage_type {
        return;
    }
    let mut grows = |field: &str, before: i32, after: i32| {
        let least = (i64::from(before) * 11 + 9) / 10;
        if after > before && i64::from(after) < least {
            let detail = format!(
                "is less than 10 % above {before}: RDS rejects this growth, or increases it; set at least {least}"
            );
            diagnostics.invalid(field, after, detail);
        }
    };
    grows("spec.storage.sizeGib", old.size_gib, new.size_gib);
    if let (Some(before), Some(after)) = (old.iops, new.iops) {
        grows("spec.storage.iops", before, after);
    }
}
