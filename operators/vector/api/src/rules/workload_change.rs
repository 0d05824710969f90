//! Rules about changes of workloads: what they do to the Pods.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use serde_json::to_value;

use crate::change_preview::ChangePreview;
use crate::rules::context::VectorContext;
use crate::types::workload_kind::WorkloadKind;

/// Page about reloads and restarts.
const RELOADS: &str = "https://vector.dev/docs/administration/management/";

/// Returns the rules. Without a change, and without a context that can compare objects, they find nothing.
pub(crate) fn rules<K: WorkloadKind>() -> Vec<Rule<K>> {
    let rule = |id, description, validate| Rule {
        id,
        description,
        severity: Severity::Warning,
        reference: RELOADS,
        fields: &["spec"],
        validate,
    };
    vec![
        rule(
            "pods-replaced",
            "The change of a workload replaces none of its Pods.",
            |context, diagnostics| report(true, context, diagnostics),
        ),
        rule(
            "configuration-reloaded",
            "The change of a workload leaves the configuration as it is, so that Vector does not reload it.",
            |context, diagnostics| report(false, context, diagnostics),
        ),
    ]
}

fn report<K: WorkloadKind>(
    replaces_pods: bool,
    context: &RuleContext<'_, K>,
    diagnostics: &mut Diagnostics,
) {
    let preview = context.get_or_compute(|| preview(context));
    let Some(preview) = preview.as_ref() else {
        return;
    };
    if preview.replaces_pods != replaces_pods {
        return;
    }
    let reasons = preview.reasons.join(", ");
    let detail = if replaces_pods {
        format!("this change replaces the Pods in a rolling update: {reasons}")
    } else {
        format!("Vector reloads this change, and no Pod restarts: {reasons}")
    };
    diagnostics.push(FieldError::invalid_hidden(FieldPath::new("spec"), detail));
}

fn preview<K: WorkloadKind>(context: &RuleContext<'_, K>) -> Option<ChangePreview> {
    let old = to_value(context.old?).ok()?;
    let new = to_value(context.object).ok()?;
    let preview = context.extension::<VectorContext>()?.change_preview()?;
    preview(K::KIND, &old, &new)
}
