//! RBAC roles of the controller and of users.

use serde_json::{Value, json};
use shared_validation::Validator;

use crate::options::InstallOptions;
use crate::{crds, names};

pub(crate) fn all(install: &InstallOptions<'_>) -> Vec<Value> {
    let mut all = vec![
        service_account(names::NAMESPACE),
        controller_cluster_role(install),
        binding("ClusterRoleBinding", None, names::NAMESPACE),
        controller_role(install),
        binding("RoleBinding", Some(names::NAMESPACE), names::NAMESPACE),
    ];
    if !install.webhook_only {
        all.extend(user_roles(install));
    }
    all
}

fn user_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    vec![
        user_role(
            install,
            "edit",
            &["create", "delete", "deletecollection", "patch", "update"],
        ),
        user_role(install, "view", &["get", "list", "watch"]),
    ]
}

/// Returns the `ClusterRole`s that extend the built-in roles `admin`, `edit` and `view`. RBAC lets users grant only
/// rights that they have themselves, so `admin` gets all rights that the controller needs in a namespace.
pub(crate) fn tenant_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    let mut rules = object_rules(install);
    rules.push(json!({
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "get", "update"],
    }));
    let name = format!("{}-loop", names::APP);
    let mut of_loop = role("ClusterRole", None, &rules);
    of_loop["metadata"] = metadata(&name, None);
    of_loop["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] = json!("true");
    let mut all = user_roles(install);
    all.push(of_loop);
    all
}

/// Returns the role and binding, in one namespace, of a controller that is limited to some namespaces. It runs in
/// the namespace `home`.
pub(crate) fn within(install: &InstallOptions<'_>, namespace: &str, home: &str) -> Vec<Value> {
    let mut rules = object_rules(install);
    if namespace == home {
        rules.extend(lease_rules());
    }
    vec![
        role("Role", Some(namespace), &rules),
        binding("RoleBinding", Some(namespace), home),
    ]
}

pub(crate) fn service_account(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(names::SERVICE_ACCOUNT, Some(namespace)),
        // The token is projected into the controller's container only.
        "automountServiceAccountToken": false,
    })
}

/// Returns the rights of the controller on the objects of every kind, and the additional rights of the operators.
fn object_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for (group, plural) in kinds(install) {
        rules.push(json!({"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "patch", "watch"]}));
        rules.push(json!({"apiGroups": [group], "resources": [subresource(plural, "status")], "verbs": ["patch"]}));
        // Owner references need this with the admission plugin OwnerReferencesPermissionEnforcement.
        rules.push(json!({"apiGroups": [group], "resources": [subresource(plural, "finalizers")], "verbs": ["update"]}));
    }
    rules.push(
        // `patch`: a repeated Event increments the counter of the existing one.
        json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}),
    );
    rules.extend(install.rbac_rules.iter().cloned());
    rules
}

/// Returns the rights for leader election.
fn lease_rules() -> [Value; 2] {
    let leases = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]});
    let (mut make, mut keep) = (leases.clone(), leases);
    // RBAC cannot bind `create` to a name.
    make["verbs"] = json!(["create"]);
    keep["resourceNames"] = json!([names::LEASE]);
    keep["verbs"] = json!(["get", "update"]);
    [make, keep]
}

fn controller_cluster_role(install: &InstallOptions<'_>) -> Value {
    let mut rules = if install.webhook_only {
        Vec::new()
    } else {
        object_rules(install)
    };
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
    // To check whether the CRDs of the cluster match the compiled ones.
    rules.push(on_crds(
        validators(install).map(crds::name).collect(),
        &["get", "list", "watch"],
    ));
    let converted: Vec<_> = validators(install)
        .filter(|ruleset| crds::converts(*ruleset))
        .map(crds::name)
        .collect();
    if !converted.is_empty() {
        rules.push(on_crds(converted, &["patch"]));
    }
    rules.extend(admission_probe_rules(install, false));
    role("ClusterRole", None, &rules)
}

fn role(kind: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(names::APP, namespace),
        "rules": rules,
    })
}

/// Returns the role in the own namespace: for the webhook's certificates, the Lease, and admission probes.
fn controller_role(install: &InstallOptions<'_>) -> Value {
    let mut rules = vec![
        // RBAC cannot bind `create` to a name.
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [names::TLS_SECRET], "verbs": ["get", "list", "update", "watch"]}),
        // To read the desired number of replicas.
        json!({"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": [names::APP], "verbs": ["get"]}),
        // To find the replicas of the webhook and check which certificate each of them serves.
        json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]}),
    ];
    if !install.webhook_only {
        rules.extend(lease_rules());
    }
    rules.extend(admission_probe_rules(install, true));
    role("Role", Some(names::NAMESPACE), &rules)
}

/// Returns the rights for admission probes. A dry run needs the same right as a real creation: in the own
/// namespace, or for cluster-scoped kinds in the cluster.
fn admission_probe_rules(install: &InstallOptions<'_>, namespaced: bool) -> Vec<Value> {
    let judges = validators(install)
        .filter(|ruleset| (ruleset.crd()["spec"]["scope"] != "Cluster") == namespaced);
    judges
        .map(|ruleset| {
            let plural = &ruleset.crd()["spec"]["names"]["plural"];
            json!({"apiGroups": [ruleset.group()], "resources": [plural], "verbs": ["create"]})
        })
        .collect()
}

/// Returns a `ClusterRole` that extends the built-in role `edit` or `view`. Neither may write a status.
fn user_role(install: &InstallOptions<'_>, role: &str, verbs: &[&str]) -> Value {
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

/// Returns the binding of the role to the controllers that run in the namespace `home`.
fn binding(kind: &str, namespace: Option<&str>, home: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(names::APP, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind.trim_end_matches("Binding"), "name": names::APP},
        "subjects": [{"kind": "ServiceAccount", "name": names::SERVICE_ACCOUNT, "namespace": home}],
    })
}

fn validators<'a>(install: &'a InstallOptions<'_>) -> impl Iterator<Item = &'a dyn Validator> {
    install
        .validators
        .iter()
        .map(|ruleset| ruleset.as_ref() as _)
}

fn kinds<'a>(install: &'a InstallOptions<'_>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    validators(install).map(|ruleset| (ruleset.group(), &ruleset.crd()["spec"]["names"]["plural"]))
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
