//! Characters and prefixes of tags, which RDS would reject with the whole request.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};

use crate::spec::CloudDatabase;

const TAG: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_Tag.html";

/// Beginnings of values that AWS reserves.
const RESERVED: [&str; 2] = ["aws:", "rds:"];

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "tag-characters",
            description: "Tags may have letters, digits, spaces and the characters `_.:/=+-@`.",
            severity: Severity::Error,
            reference: TAG,
            fields: &["spec.tags"],
            validate: characters,
        },
        Rule {
            id: "tag-value-reserved",
            description: "Values of tags must not start with `aws:` or `rds:`.",
            severity: Severity::Error,
            reference: TAG,
            fields: &["spec.tags"],
            validate: reserved_value,
        },
    ]
}

/// Returns true if RDS allows a character: a letter, a digit, or a separator of Unicode, or one of some others. Marks that belong
/// to letters are left to RDS.
fn is_allowed(character: char) -> bool {
    let is_separator = character.is_whitespace() && !character.is_control();
    let is_ascii = character.is_ascii();
    character.is_alphanumeric()
        || is_separator
        || (is_ascii && "_.:/=+-@".contains(character))
        || (!is_ascii && !character.is_control() && !is_symbol(character))
}

/// Returns true if a character outside of ASCII is surely neither a letter nor a digit nor a mark.
fn is_symbol(character: char) -> bool {
    matches!(character,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{20a0}'..='\u{20cf}' | '\u{2190}'..='\u{23ff}'
        | '\u{2500}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}')
}

fn characters(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    for (key, value) in &context.object.spec.tags {
        for text in [key, value] {
            if let Some(character) = text.chars().find(|it| !is_allowed(*it)) {
                let detail = format!(
                    "has the character {character:?}, which RDS allows in no tag; use letters, digits, spaces and _.:/=+-@"
                );
                let path = FieldPath::new("spec.tags").key(key);
                diagnostics.push(FieldError::invalid(path, text.as_str(), detail));
                break;
            }
        }
    }
}

fn reserved_value(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    for (key, value) in &context.object.spec.tags {
        if RESERVED.iter().any(|prefix| value.starts_with(prefix)) {
            let detail = "starts with a prefix that AWS reserves; choose another value";
            let path = FieldPath::new("spec.tags").key(key);
            diagnostics.push(FieldError::invalid(path, value.as_str(), detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_and_spaces_of_all_languages_are_allowed() {
        for allowed in ["Straße 1", "データ", "a_b.c:d/e=f+g-h@i", "\u{a0}", "ठी"] {
            assert!(allowed.chars().all(is_allowed), "{allowed}");
        }
        for other in [',', '*', '#', '"', '(', '\t', '\n', '€', '→', '😀'] {
            assert!(!is_allowed(other), "{other:?}");
        }
    }
}
