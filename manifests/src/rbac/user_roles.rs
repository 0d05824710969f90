//! Roles of users, by the audiences of the kinds.

use lockstep_shared_validation::Validator;
use serde_json::{Value, json};

use crate::crds::plural;
use crate::names::Names;
use crate::options::InstallOptions;
use crate::rbac::role::cluster_role;
use crate::rbac::verbs::{READ, WRITE};

/// Returns the `ClusterRole`s of users. Those that extend built-in roles exist also without rules: they replace those of an
/// earlier installation, which had some.
pub(crate) fn user_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    let mut all = vec![
        aggregated_role(&install.names, "edit", &edit_rules(install)),
        aggregated_role(&install.names, "view", &view_rules(install)),
    ];
    let rules = administrator_rules(install);
    if !rules.is_empty() {
        let name = &install.names.administrator;
        all.push(cluster_role(&install.names, name, &rules));
    }
    all
}

/// Returns the rights of tenants who write objects.
pub(crate) fn edit_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let for_tenants = |ruleset: &dyn Validator| is_for_tenants(install, ruleset);
    user_rules(install, for_tenants, &WRITE)
}

/// Returns the rights of users who read the objects of a namespace.
pub(crate) fn view_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let is_namespaced = |ruleset: &dyn Validator| ruleset.crd()["spec"]["scope"] != "Cluster";
    user_rules(install, is_namespaced, &READ)
}

/// Returns the rights on the kinds for administrators.
pub(crate) fn administrator_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let for_administrators = |ruleset: &dyn Validator| !is_for_tenants(install, ruleset);
    let mut verbs = [&READ[..], &WRITE[..]].concat();
    verbs.sort_unstable();
    user_rules(install, for_administrators, &verbs)
}

fn is_for_tenants(install: &InstallOptions<'_>, ruleset: &dyn Validator) -> bool {
    let found = install
        .tenant_validators
        .get(ruleset.group(), ruleset.kind());
    found.is_some()
}

fn user_rules(
    install: &InstallOptions<'_>,
    is_included: impl Fn(&dyn Validator) -> bool,
    verbs: &[&str],
) -> Vec<Value> {
    install
        .validators
        .iter()
        .map(|ruleset| -> &dyn Validator { ruleset.as_ref() })
        .filter(|ruleset| is_included(*ruleset))
        .map(|ruleset| json!({"apiGroups": [ruleset.group()], "resources": [plural(ruleset)], "verbs": verbs}))
        .collect()
}

/// Returns a `ClusterRole` that extends the built-in role `edit` or `view`.
fn aggregated_role(names: &Names, role: &str, rules: &[Value]) -> Value {
    let name = format!("{}-{role}", names.program);
    let mut aggregated = cluster_role(names, &name, rules);
    let labels = &mut aggregated["metadata"]["labels"];
    labels[aggregate_to(role)] = json!("true");
    if role == "edit" {
        labels[aggregate_to("admin")] = json!("true");
    }
    aggregated
}

/// Returns the label by which a `ClusterRole` extends a built-in role.
pub(crate) fn aggregate_to(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}
