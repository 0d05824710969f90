//! RBAC roles of the controller and of users.

use lockstep_shared_validation::Validator;
use serde_json::{Value, json};

use crate::crds;
use crate::names::Names;
use crate::options::InstallOptions;

pub(crate) fn all(install: &InstallOptions<'_>) -> Vec<Value> {
    let names = &install.names;
    let namespace = names.namespace.as_str();
    let home = Some(namespace);
    let mut all = vec![
        service_account(names, namespace),
        role(names, "ClusterRole", None, &cluster_rules(install, names)),
        binding(names, "ClusterRoleBinding", None, namespace),
        role(names, "Role", home, &own_namespace_rules(install, names)),
        binding(names, "RoleBinding", home, namespace),
    ];
    if !install.webhook_only {
        all.extend(secret_reader(install));
        all.extend(user_roles(install));
    }
    all
}

/// Returns the `ClusterRole` with the rights on Secrets, if the operators need any. It is not bound in the whole
/// cluster: an administrator binds it in each namespace whose Secrets the controller may read.
fn secret_reader(install: &InstallOptions<'_>) -> Option<Value> {
    let rules = secret_rules(install);
    (!rules.is_empty()).then(|| {
        let names = &install.names;
        let mut reader = role(names, "ClusterRole", None, &rules);
        reader["metadata"] = metadata(names, &names.secret_reader, None);
        reader
    })
}

/// Returns the rights of the operators on Secrets.
pub(crate) fn secret_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let rules = install.rbac_rules.iter();
    rules.filter_map(|rule| only(rule, is_secrets)).collect()
}

/// Returns the rights of the operators on everything but Secrets.
fn rules_without_secrets(install: &InstallOptions<'_>) -> impl Iterator<Item = Value> {
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

/// Returns the rule with those of its resources that the predicate selects, and nothing if it selects none.
fn only(rule: &Value, selects: impl Fn(&Value, &Value) -> bool) -> Option<Value> {
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

fn user_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    vec![
        user_role(&install.names, "edit", &edit_rules(install)),
        user_role(&install.names, "view", &view_rules(install)),
    ]
}

/// Returns the rights of users who write objects. They may not write a status.
pub(crate) fn edit_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let verbs = ["create", "delete", "deletecollection", "patch", "update"];
    user_rules(install, &verbs)
}

/// Returns the rights of users who read objects.
pub(crate) fn view_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    user_rules(install, &["get", "list", "watch"])
}

fn user_rules(install: &InstallOptions<'_>, verbs: &[&str]) -> Vec<Value> {
    kinds(install)
        .map(|(group, plural)| json!({"apiGroups": [group], "resources": [plural], "verbs": verbs}))
        .collect()
}

/// Returns the `ClusterRole`s that extend the built-in roles `admin`, `edit` and `view`. RBAC lets users grant only
/// rights that they have themselves, so `admin` gets all rights that the controller needs in a namespace.
pub(crate) fn tenant_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    let names = &install.names;
    let name = format!("{}-aggregate-to-admin", names.program);
    let mut aggregated = role(names, "ClusterRole", None, &tenant_admin_rules(install));
    aggregated["metadata"] = metadata(names, &name, None);
    aggregated["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] =
        json!("true");
    let mut all = user_roles(install);
    all.push(aggregated);
    all
}

/// Returns the rights that `admin` needs to grant the controller its rights in a namespace.
pub(crate) fn tenant_admin_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let mut rules = namespace_rules(install);
    // The administrator of a namespace decides about shards.
    rules.push(sharding_rule());
    rules
}

/// Returns the role and binding, in one namespace, of a controller that is limited to some namespaces. It runs in
/// the namespace `home`.
pub(crate) fn within(install: &InstallOptions<'_>, namespace: &str, home: &str) -> Vec<Value> {
    let names = &install.names;
    let mut rules = namespace_rules(install);
    if namespace == home {
        rules.extend(lease_rules(install, names));
        rules.extend(install.own_namespace_rules.iter().cloned());
    }
    vec![
        role(names, "Role", Some(namespace), &rules),
        binding(names, "RoleBinding", Some(namespace), home),
    ]
}

pub(crate) fn service_account(names: &Names, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(names, &names.service_account, Some(namespace)),
        // The token is projected into the controller's container only.
        "automountServiceAccountToken": false,
    })
}

/// Returns the rights of the controller in a namespace that it is limited to.
pub(crate) fn namespace_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let rules = object_rules(install);
    // A Role grants nothing on cluster-scoped objects.
    let is_namespaced = |_: &Value, resource: &Value| resource != "namespaces";
    let rules = rules.iter().filter_map(|rule| match rule.get("resources") {
        Some(_) => only(rule, is_namespaced),
        None => Some(rule.clone()),
    });
    let mut rules: Vec<_> = rules.collect();
    rules.extend(secret_rules(install));
    rules
}

/// Returns the rights of the controller on the objects of every kind, and the additional rights of the operators but
/// those on Secrets.
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
    rules.extend(rules_without_secrets(install));
    rules
}

/// Returns the rights for leader election.
fn lease_rules(install: &InstallOptions<'_>, names: &Names) -> Vec<Value> {
    if install.shards.is_some() {
        return vec![sharding_rule()];
    }
    let leases = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]});
    let (mut create, mut update) = (leases.clone(), leases);
    // RBAC cannot bind `create` to a name.
    create["verbs"] = json!(["create"]);
    update["resourceNames"] = json!([names.lease]);
    update["verbs"] = json!(["get", "update"]);
    vec![create, update]
}

/// Returns the rights on the Leases of the shards and of the replicas. Their names contain those of the Pods, so that RBAC
/// cannot list them.
pub(crate) fn sharding_rule() -> Value {
    json!({
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "delete", "get", "list", "update"],
    })
}

/// Returns the rights of the controller in the whole cluster.
pub(crate) fn cluster_rules(install: &InstallOptions<'_>, names: &Names) -> Vec<Value> {
    let mut rules = if install.webhook_only {
        install.admission_check_rules.clone()
    } else {
        object_rules(install)
    };
    if install.no_webhook {
        return rules;
    }
    if install.webhook_only {
        rules.push(configuration_event_rule());
    }
    rules.push(json!({
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [names.webhook_configuration],
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
    rules
}

/// Returns the right to publish Events on the Secret with the certificates and on webhook configurations. Those on
/// cluster-scoped objects are in the namespace `default`.
fn configuration_event_rule() -> Value {
    json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]})
}

fn role(names: &Names, kind: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(names, &names.program, namespace),
        "rules": rules,
    })
}

/// Returns the rights in the own namespace: for the webhook's certificates, the Lease, admission probes, and the operators.
pub(crate) fn own_namespace_rules(install: &InstallOptions<'_>, names: &Names) -> Vec<Value> {
    if install.no_webhook {
        let leases = lease_rules(install, names).into_iter();
        return leases
            .chain(install.own_namespace_rules.iter().cloned())
            .collect();
    }
    let mut rules = vec![
        // RBAC cannot bind `create` to a name.
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [names.tls_secret], "verbs": ["get", "list", "update", "watch"]}),
        // To read the desired number of replicas.
        json!({"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": [names.deployment], "verbs": ["get"]}),
        // To find the replicas of the webhook and check which certificate each of them serves.
        json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]}),
    ];
    if !install.webhook_only {
        rules.extend(lease_rules(install, names));
        rules.extend(install.own_namespace_rules.iter().cloned());
    }
    rules.extend(admission_probe_rules(install, true));
    rules
}

/// Returns the rights for admission probes. A dry run needs the same right as a real creation: in the own
/// namespace, or for cluster-scoped kinds in the cluster.
fn admission_probe_rules(install: &InstallOptions<'_>, namespaced: bool) -> Vec<Value> {
    let validates = validators(install)
        .filter(|ruleset| (ruleset.crd()["spec"]["scope"] != "Cluster") == namespaced);
    validates
        .map(|ruleset| {
            let plural = &ruleset.crd()["spec"]["names"]["plural"];
            json!({"apiGroups": [ruleset.group()], "resources": [plural], "verbs": ["create"]})
        })
        .collect()
}

/// Returns a `ClusterRole` that extends the built-in role `edit` or `view`.
fn user_role(names: &Names, role: &str, rules: &[Value]) -> Value {
    let mut metadata = metadata(names, &format!("{}-{role}", names.program), None);
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
fn binding(names: &Names, kind: &str, namespace: Option<&str>, home: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(names, &names.program, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind.trim_end_matches("Binding"), "name": names.program},
        "subjects": [{"kind": "ServiceAccount", "name": names.service_account, "namespace": home}],
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

fn metadata(names: &Names, name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": {"app.kubernetes.io/name": names.program}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn subresource(plural: &Value, name: &str) -> String {
    format!("{}/{name}", plural.as_str().unwrap_or_default())
}
