//! What the controller may do, and what users get.

use serde_json::{Value, json};
use shared_validation::Judge;

use crate::{Install, crds, names};

pub(crate) fn all(install: &Install<'_>) -> Vec<Value> {
    vec![
        service_account(),
        controller_cluster_role(install),
        binding("ClusterRoleBinding", names::APP, None, "ClusterRole"),
        controller_role(install),
        binding("RoleBinding", names::APP, Some(names::NAMESPACE), "Role"),
        user_role(
            install,
            "edit",
            &["create", "delete", "deletecollection", "patch", "update"],
        ),
        user_role(install, "view", &["get", "list", "watch"]),
    ]
}

fn service_account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(names::SERVICE_ACCOUNT, Some(names::NAMESPACE)),
        // The token is projected into the controller's container only.
        "automountServiceAccountToken": false,
    })
}

fn controller_cluster_role(install: &Install<'_>) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    for (group, plural) in kinds(install) {
        rules.push(json!({"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "patch", "watch"]}));
        rules.push(json!({"apiGroups": [group], "resources": [subresource(plural, "status")], "verbs": ["patch"]}));
        // Where owners may only be named by who may delete them (OwnerReferencesPermissionEnforcement).
        rules.push(json!({"apiGroups": [group], "resources": [subresource(plural, "finalizers")], "verbs": ["update"]}));
    }
    rules.push(
        // What goes on is counted in the same Event.
        json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}),
    );
    rules.push(json!({
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [names::WEBHOOK_CONFIGURATION],
        "verbs": ["get", "list", "patch", "watch"],
    }));
    let on_crds = |names: Vec<&str>, verbs: &[&str]| {
        json!({
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": names,
            "verbs": verbs,
        })
    };
    // Whether the cluster judges by the same CRD.
    rules.push(on_crds(
        judges(install).map(crds::name).collect(),
        &["get", "list", "watch"],
    ));
    let converted: Vec<_> = judges(install)
        .filter(|ruleset| crds::converts(*ruleset))
        .map(crds::name)
        .collect();
    if !converted.is_empty() {
        rules.push(on_crds(converted, &["patch"]));
    }
    rules.extend(canaries(install, false));
    rules.extend(install.access.iter().cloned());
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(names::APP, None),
        "rules": rules,
    })
}

/// In its own namespace: the gate's keys, the Lease, and canaries.
fn controller_role(install: &Install<'_>) -> Value {
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(names::APP, Some(names::NAMESPACE)),
        "rules": [
            // RBAC cannot bind `create` to a name.
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [names::TLS_SECRET], "verbs": ["get", "list", "update", "watch"]},
            // Whether any replica is wanted.
            {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": [names::APP], "verbs": ["get"]},
            // The replicas of the gate, to see which certificate each of them shows.
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [names::LEASE],
                "verbs": ["get", "update"],
            },
        ],
    });
    if let Some(rules) = role["rules"].as_array_mut() {
        rules.extend(canaries(install, true));
    }
    role
}

/// A dry run, refused or not, is asked for like any other creation: in the own namespace, or for kinds that
/// are in none, in the cluster.
fn canaries(install: &Install<'_>, namespaced: bool) -> Vec<Value> {
    let judges = judges(install)
        .filter(|ruleset| (ruleset.crd()["spec"]["scope"] != "Cluster") == namespaced);
    judges
        .map(|ruleset| {
            let plural = &ruleset.crd()["spec"]["names"]["plural"];
            json!({"apiGroups": [ruleset.group()], "resources": [plural], "verbs": ["create"]})
        })
        .collect()
}

/// What the cluster's own `edit` and `view` gain. Neither may write a status.
fn user_role(install: &Install<'_>, role: &str, verbs: &[&str]) -> Value {
    let rules: Vec<_> = kinds(install)
        .map(|(group, plural)| json!({"apiGroups": [group], "resources": [plural], "verbs": verbs}))
        .collect();
    let mut metadata = metadata(&format!("{}-{role}", names::APP), None);
    metadata["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{role}")] = json!("true");
    if role == "edit" {
        metadata["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] = json!("true");
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": rules,
    })
}

fn binding(kind: &str, name: &str, namespace: Option<&str>, role_kind: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(name, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": names::SERVICE_ACCOUNT, "namespace": names::NAMESPACE}],
    })
}

fn judges<'a>(install: &'a Install<'_>) -> impl Iterator<Item = &'a dyn Judge> {
    install.rulesets.iter().map(|ruleset| ruleset.as_ref() as _)
}

fn kinds<'a>(install: &'a Install<'_>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    judges(install).map(|ruleset| (ruleset.group(), &ruleset.crd()["spec"]["names"]["plural"]))
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": {"app.kubernetes.io/name": names::APP}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn subresource(plural: &Value, name: &str) -> String {
    format!("{}/{name}", plural.as_str().unwrap_or_default())
}
