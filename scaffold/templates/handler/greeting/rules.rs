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
    if !has_balanced_braces(text) {
        let detail = "must close every brace, as in `{user}`";
        diagnostics.invalid(field!(Greeting, "spec.text"), text.as_str(), detail);
    }
}

fn has_balanced_braces(text: &str) -> bool {
    let mut open = 0_usize;
    for letter in text.chars() {
        match letter {
            '{' => open += 1,
            '}' if open == 0 => return false,
            '}' => open -= 1,
            _ => {}
        }
    }
    open == 0
}

#[cfg(test)]
mod tests {
    use super::has_balanced_braces;

    #[test]
    fn braces_are_balanced_if_each_is_closed_after_it_is_opened() {
        for text in ["", "Hello", "Hello, {user}!", "{a{b}}"] {
            assert!(has_balanced_braces(text), "{text}");
        }
        for text in ["{", "}", "Hello, {user!", "}{"] {
            assert!(!has_balanced_braces(text), "{text}");
        }
    }
}
