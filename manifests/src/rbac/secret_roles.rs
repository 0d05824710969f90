//! Rights on Secrets, which an administrator grants in single namespaces.

use serde_json::{Value, json};

use crate::names::Names;
use crate::options::InstallOptions;
use crate::rbac::role::cluster_role;
use crate::rbac::rules::only;
use crate::rbac::verbs::READ;

// Descriptions of the roles. The template of the charts has them, too.
const VIEWER: &str =
    "Lets the controller read the Secrets of a namespace, if a RoleBinding binds it there.";
const EDITOR: &str = "Lets the controller read, create, change and delete the Secrets of a namespace, if a RoleBinding binds it there.";
const EARLIER: &str = "Deprecated: it reads, creates, changes and deletes Secrets, which its name does not say. Bind the \
    ClusterRole with the suffix secret-viewer or secret-editor instead.";

/// Returns the `ClusterRole`s with the rights on Secrets, if the operators need any. They are not bound in the whole
/// cluster: an administrator binds one of them in each namespace whose Secrets the controller may read or write.
pub(crate) fn secret_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    let names = &install.names;
    let (view, edit) = (secret_viewer_rules(install), secret_rules(install));
    let roles = [
        secret_role(names, &names.secret_viewer, &view, VIEWER),
        secret_role(names, &names.secret_editor, &edit, EDITOR),
        secret_role(names, &names.secret_reader, &edit, EARLIER),
    ];
    roles.into_iter().flatten().collect()
}

fn secret_role(names: &Names, name: &str, rules: &[Value], description: &str) -> Option<Value> {
    let mut role = cluster_role(names, name, rules);
    role["metadata"]["annotations"] = json!({"kubernetes.io/description": description});
    (!rules.is_empty()).then_some(role)
}

/// Returns the rights of the operators on Secrets.
pub(crate) fn secret_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let rules = install.rbac_rules.iter();
    rules.filter_map(|rule| only(rule, is_secrets)).collect()
}

/// Returns the rights of the operators to read Secrets.
pub(crate) fn secret_viewer_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    secret_rules(install)
        .into_iter()
        .filter_map(reading_only)
        .fold(Vec::new(), |mut rules, rule| {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
            rules
        })
}

/// Returns the rule with those of its verbs that read, and nothing if it has none.
fn reading_only(mut rule: Value) -> Option<Value> {
    let verbs = rule["verbs"].as_array()?;
    let grants = |verb: &&str| {
        verbs
            .iter()
            .any(|granted| granted == *verb || granted == "*")
    };
    let reading: Vec<_> = READ.into_iter().filter(grants).collect();
    if reading.is_empty() {
        return None;
    }
    rule["verbs"] = json!(reading);
    Some(rule)
}

/// Returns the rights of the operators on everything but Secrets.
pub(crate) fn rules_without_secrets(install: &InstallOptions<'_>) -> impl Iterator<Item = Value> {
    let rules = install.rbac_rules.iter();
    rules.filter_map(|rule| match rule.get("resources") {
        Some(_) => only(rule, |groups, resource| !is_secrets(groups, resource)),
        // A rule on URLs.
        None => Some(rule.clone()),
    })
}

fn is_secrets(groups: &Value, resource: &Value) -> bool {
    let is_core = |group: &Value| group == "" || group == "*";
    let is_core_group = groups.as_array().is_some_and(|all| all.iter().any(is_core));
    is_core_group && (resource == "secrets" || resource == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_of_secrets_gets_what_reads_of_each_rule() {
        let rule =
            |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["secrets"], "verbs": verbs});
        for (verbs, reading) in [
            (
                &["create", "delete", "get", "list", "patch", "watch"][..],
                Some(&READ[..]),
            ),
            (&["*"], Some(&READ[..])),
            (&["get", "patch"], Some(&["get"])),
            (&["create"], None),
        ] {
            assert_eq!(reading_only(rule(verbs)), reading.map(rule), "{verbs:?}");
        }
    }
}
