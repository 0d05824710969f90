//! Warnings about changes: what they do to the clients of a running instance.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};

use crate::effects::{ChangeEffect, Effect, Timing, effects};
use crate::spec::CloudDatabase;
use crate::validation::computed::Computed;

/// Page with the effect of each setting.
const SETTINGS: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_ModifyInstance.Settings.html";

/// Returns the rules. Without a change they find nothing.
pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    let rule = |id, description, validate| Rule {
        id,
        description,
        severity: Severity::Warning,
        reference: SETTINGS,
        fields: &["spec"],
        validate,
    };
    vec![
        rule(
            "change-with-outage",
            "A change of a running instance interrupts no clients.",
            |context, diagnostics| {
                let interrupts =
                    |it: &ChangeEffect| it.effect.interrupts() && it.timing != Timing::NextRestart;
                report(context, diagnostics, interrupts, |it| {
                    format!("RDS applies this change {}", it.words())
                });
            },
        ),
        rule(
            "change-at-next-restart",
            "A change of a running instance needs no restart in RDS.",
            |context, diagnostics| {
                let waits = |it: &ChangeEffect| it.timing == Timing::NextRestart;
                report(context, diagnostics, waits, |it| {
                    format!("RDS applies this change {}", it.words())
                });
            },
        ),
        rule(
            "change-not-requested",
            "A change of a running instance is requested from RDS.",
            |context, diagnostics| {
                // A version that is not allowed has a rule of its own.
                let is_not_requested = |it: &ChangeEffect| {
                    it.effect == Effect::NotRequested && it.field != "engineVersion"
                };
                report(context, diagnostics, is_not_requested, |it| {
                    format!("this change is not requested: {}", it.reason)
                });
            },
        ),
    ]
}

fn report(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
    concerns: impl Fn(&ChangeEffect) -> bool,
    detail: impl Fn(&ChangeEffect) -> String,
) {
    let Some(old) = context.old else {
        return;
    };
    let status = context.object.status.as_ref();
    let is_created = status.is_none_or(|it| it.arn.is_some() || it.endpoint.is_some());
    if !is_created {
        return;
    }
    let all = Computed::of_rules(context).effects(|| effects(&old.spec, &context.object.spec));
    for effect in all.iter().filter(|it| concerns(it)) {
        let path = FieldPath::new(format!("spec.{}", effect.field));
        diagnostics.push(FieldError::invalid_hidden(path, detail(effect)));
    }
}
