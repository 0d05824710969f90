//! Permissions that a reconciler needs, and those that its operator declares for the manifests.

use anyhow::ensure;
use kube::api::ApiResource;
use serde_json::{Value, json};

/// Returns the rules on the installed kinds that the manifests contain for every program.
pub(crate) fn rules_of_installed(kinds: &[ApiResource]) -> Vec<Value> {
    let of_kinds = kinds.iter().flat_map(|kind| {
        let plural = kind.plural.as_str();
        let rule = |resource: String, verbs: &[&str]| json!({"apiGroups": [kind.group], "resources": [resource], "verbs": verbs});
        [
            rule(plural.to_owned(), &["get", "list", "patch", "watch"]),
            rule(format!("{plural}/status"), &["patch"]),
            rule(format!("{plural}/finalizers"), &["update"]),
        ]
    });
    let events = json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]});
    of_kinds.chain([events]).collect()
}

/// Returns an error if the rules that a reconciler needs are not among the declared ones. A test with the rights of an
/// administrator would pass, but in an installation the API server would refuse the requests of the controller.
pub(crate) fn require_declared(
    kind: &str,
    needed: &[Value],
    declared: &[Value],
) -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for rule in needed {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                let verbs = texts(rule, "verbs");
                let verbs = verbs.filter(|verb| {
                    let grants =
                        |granted: &Value| granted == rule || grants(granted, group, resource, verb);
                    !declared.iter().any(grants)
                });
                let verbs: Vec<_> = verbs.collect();
                if !verbs.is_empty() {
                    let separator = if group.is_empty() { "" } else { "." };
                    missing.push(format!(
                        "{} on {resource}{separator}{group}",
                        verbs.join(", ")
                    ));
                }
            }
        }
    }
    ensure!(
        missing.is_empty(),
        "the reconciler of {kind} needs permissions that its operator does not declare, so the manifests would not grant them: \
         {}; declare them with `Operator::rbac_rules`, such as `OwnedType::rbac_rule` of each type that it owns",
        missing.join("; ")
    );
    Ok(())
}

/// Returns true if a rule grants a verb on all objects of a resource.
fn grants(rule: &Value, group: &str, resource: &str, verb: &str) -> bool {
    let has =
        |field: &str, wanted: &str| texts(rule, field).any(|text| text == "*" || text == wanted);
    rule.get("resourceNames").is_none()
        && has("apiGroups", group)
        && has("resources", resource)
        && has("verbs", verb)
}

fn texts<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let texts = rule[field].as_array().into_iter().flatten();
    texts.filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
        json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
    }

    #[test]
    fn rules_that_are_declared_in_another_form_suffice() {
        let needed = [rule("", "configmaps", &["create", "get"])];
        for declared in [
            vec![rule("", "configmaps", &["get", "create", "list"])],
            vec![
                rule("", "configmaps", &["get"]),
                rule("*", "*", &["create"]),
            ],
            needed.to_vec(),
        ] {
            assert!(
                require_declared("Lamp", &needed, &declared).is_ok(),
                "{declared:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_in_the_error() {
        let needed = [
            rule("", "configmaps", &["create", "get"]),
            rule("apps", "deployments", &["list"]),
        ];
        let mut named = rule("", "configmaps", &["create"]);
        named["resourceNames"] = json!(["one"]);
        let declared = [rule("", "configmaps", &["get"]), named];
        let error = require_declared("Lamp", &needed, &declared).expect_err("missing rules");
        let error = error.to_string();
        assert!(
            error.contains("create on configmaps; list on deployments.apps;"),
            "{error}"
        );
    }
}
