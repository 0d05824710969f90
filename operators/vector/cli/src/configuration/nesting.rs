//! Depth of a YAML text, read by a parser that stops at a limit.

use serde_saphyr::Budget;
use serde_saphyr::budget::{BudgetBreach, EnforcingPolicy, check_yaml_budget};

/// Number of levels that the parser of Vector is given at most. It rejects far fewer, and is fast up to here.
const MAX_LEVELS: usize = 1_000;

/// Returns true if lists and mappings contain each other too deeply. A text with an error before that is not too deep.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let mut budget = Budget::default();
    budget.max_depth = MAX_LEVELS;
    // Nothing else is limited here.
    budget.flow_nesting_limit = usize::MAX;
    budget.max_events = usize::MAX;
    budget.max_aliases = usize::MAX;
    budget.max_anchors = usize::MAX;
    budget.max_documents = usize::MAX;
    budget.max_nodes = usize::MAX;
    budget.max_total_scalar_bytes = usize::MAX;
    budget.max_merge_keys = usize::MAX;
    budget.enforce_alias_anchor_ratio = false;
    let report = check_yaml_budget(text, budget, EnforcingPolicy::AllContent);
    report.is_ok_and(|report| matches!(report.breached, Some(BudgetBreach::Depth { .. })))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LEVELS, is_too_deep};

    #[test]
    fn lists_and_mappings_are_counted() {
        for part in ["[", "{a: ", "[a, ", "[\n", "[!t ", "[&a ", "- "] {
            for before in ["", "a: !t ", "&a "] {
                let before = if part == "- " { "" } else { before };
                let text = format!("{before}{}", part.repeat(3 * MAX_LEVELS));
                assert!(is_too_deep(&text), "{before}{part}");
            }
        }
    }

    #[test]
    fn brackets_that_are_text_or_are_closed_do_not_count() {
        let many = "[".repeat(3 * MAX_LEVELS);
        for text in [
            format!("a: x{many}"),
            format!("a: \"\\\"{many}\"\nb: '{many}'"),
            format!("# {many}\na: 1 # {many}"),
            format!("a: |\n  {many}\n\n  {many}\nb: >2-\n    {many}\n"),
            "- [a, {b: ['c]', \"d]\"]}]\n".repeat(3 * MAX_LEVELS),
        ] {
            assert!(!is_too_deep(&text), "{}", &text[..10]);
        }
    }
}
