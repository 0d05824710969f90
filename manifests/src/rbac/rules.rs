//! Parts of RBAC rules.

use serde_json::{Value, json};

/// Returns the rule with those of its resources that the predicate selects, and nothing if it selects none.
pub(crate) fn only(rule: &Value, selects: impl Fn(&Value, &Value) -> bool) -> Option<Value> {
    let resources = rule["resources"].as_array()?.iter();
    let selected: Vec<_> = resources
        .filter(|resource| selects(&rule["apiGroups"], resource))
        .collect();
    (!selected.is_empty()).then(|| {
        let mut selection = rule.clone();
        selection["resources"] = json!(selected);
        selection
    })
}
