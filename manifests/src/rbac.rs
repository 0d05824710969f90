//! RBAC roles of the controller and of users.

mod role;
mod rules;
mod secret_roles;
mod user_roles;
mod verbs;

use lockstep_shared_validation::Validator;
use serde_json::{Value, json};

use crate::crds::{self, plural};
use crate::names::Names;
use crate::options::InstallOptions;
use crate::rbac::role::{binding, cluster_role, metadata, role};
use crate::rbac::rules::only;
use crate::rbac::secret_roles::{rules_without_secrets, secret_roles};
use crate::rbac::user_roles::{aggregate_to, user_roles};

pub(crate) use crate::rbac::secret_roles::{secret_rules, secret_viewer_rules};
pub(crate) use crate::rbac::user_roles::{administrator_rules, edit_rules, view_rules};

/// Cluster-scoped types among those that operators read or own.
const CLUSTER_SCOPED: [&str; 4] = ["clusterrolebindings", "clusterroles", "namespaces", "nodes"];

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
        all.extend(secret_roles(install));
        all.extend(user_roles(install));
    }
    all
}

/// Returns the `ClusterRole`s of users, and one that extends the built-in role `admin` by all rights that the controller needs
/// in a namespace for the kinds for tenants: RBAC lets users grant only rights that they have themselves.
pub(crate) fn tenant_roles(install: &InstallOptions<'_>) -> Vec<Value> {
    let names = &install.names;
    let name = format!("{}-aggregate-to-admin", names.program);
    let mut aggregated = cluster_role(names, &name, &tenant_admin_rules(install));
    aggregated["metadata"]["labels"][aggregate_to("admin")] = json!("true");
    let mut all = user_roles(install);
    all.push(aggregated);
    all
}

/// Returns the rights that `admin` needs to grant the controller its rights in a namespace. Those for the kinds for
/// administrators are not among them: with these, `admin` could change their objects.
pub(crate) fn tenant_admin_rules(install: &InstallOptions<'_>) -> Vec<Value> {
    let mut rules = namespace_rules(&InstallOptions {
        validators: install.tenant_validators,
        rbac_rules: install.tenant_rbac_rules.clone(),
        ..install.clone()
    });
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

/// Returns the role and binding of such a controller in its own namespace, if it does not watch that one.
pub(crate) fn at_home(install: &InstallOptions<'_>, home: &str) -> [Value; 2] {
    let names = &install.names;
    let leases = lease_rules(install, names).into_iter();
    let rules: Vec<_> = leases
        .chain(install.own_namespace_rules.iter().cloned())
        .collect();
    [
        role(names, "Role", Some(home), &rules),
        binding(names, "RoleBinding", Some(home), home),
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
    let is_namespaced = |_: &Value, resource: &Value| {
        let resource = resource.as_str().unwrap_or_default();
        !CLUSTER_SCOPED.contains(&resource)
    };
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

fn validators<'a>(install: &'a InstallOptions<'_>) -> impl Iterator<Item = &'a dyn Validator> {
    install
        .validators
        .iter()
        .map(|ruleset| ruleset.as_ref() as _)
}

fn kinds<'a>(install: &'a InstallOptions<'_>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    validators(install).map(|ruleset| (ruleset.group(), plural(ruleset)))
}

fn subresource(plural: &Value, name: &str) -> String {
    format!("{}/{name}", plural.as_str().unwrap_or_default())
}
