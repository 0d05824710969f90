//! Rules that neither the schema nor CEL can express.

use lockstep_sdk::shared_validation::{Diagnostics, Rule, RuleContext, Severity, field, fields};

use super::resource::Greeting;

pub(super) fn rules() -> Vec<Rule<Greeting>> {
    vec![Rule {
        id: "balanced-braces",
        description: "Every brace in the text must be closed.",
        severity: Severity::Error,
        reference: "https://doc.rust-lang.org/std/fmt/#escaping",
        fields: fields!(Greeting, "spec.text"),
        validate: |context, diagnostics| check_braces(context, diagnostics),
    }]
}

fn check_braces(context: &RuleContext<'_, Greeting>, diagnostics: &mut Diagnostics) {
    let text = &context.object.spec.text;
    let open = text.chars().try_fold(0_usize, |open, letter| match letter {
        '{' => Some(open + 1),
        '}' => open.checked_sub(1),
        _ => Some(open),
    });
    if open != Some(0) {
        let detail = "must close every brace, as in `{user}`";
        diagnostics.invalid(field!(Greeting, "spec.text"), text.as_str(), detail);
    }
}
