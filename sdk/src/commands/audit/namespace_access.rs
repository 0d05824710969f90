//! Users, groups and service accounts that can read what is in a namespace, by the RBAC objects of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::ResourceExt;
use serde::Serialize;

/// Prefix of the names that Kubernetes reserves for itself.
const RESERVED: &str = "system:";

/// Reserved names that are not of the control plane: groups of users, the user without credentials, and service accounts.
const NOT_OF_CONTROL_PLANE: [&str; 4] = [
    "system:anonymous",
    "system:authenticated",
    "system:serviceaccount",
    "system:unauthenticated",
];

/// Namespace of the service accounts of kube-controller-manager.
const KUBE_SYSTEM: &str = "kube-system";

/// Right by which a subject can read the Secrets of a namespace, directly or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum Right {
    ReadSecrets,
    /// A new or changed Pod can contain any Secret of its namespace.
    CreatePods,
    ExecuteInPods,
    /// By a token, or by impersonation.
    ActAsServiceAccounts,
}

impl Right {
    fn text(self) -> &'static str {
        match self {
            Self::ReadSecrets => "read Secrets",
            Self::CreatePods => "create Pods",
            Self::ExecuteInPods => "execute commands in Pods",
            Self::ActAsServiceAccounts => "act as service accounts",
        }
    }
}

/// Rule of a role that gives a right.
struct Grant {
    right: Right,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
}

const fn grant(
    right: Right,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Grant {
    Grant {
        right,
        group,
        resource,
        verbs,
    }
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "patch", "update"];
/// Clients open the stream with GET (WebSocket) or POST (SPDY).
const STREAM: &[&str] = &["create", "get"];

const GRANTS: [Grant; 14] = [
    grant(Right::ReadSecrets, "", "secrets", READ),
    grant(Right::CreatePods, "", "pods", WRITE),
    grant(Right::CreatePods, "", "replicationcontrollers", WRITE),
    grant(Right::CreatePods, "apps", "daemonsets", WRITE),
    grant(Right::CreatePods, "apps", "deployments", WRITE),
    grant(Right::CreatePods, "apps", "replicasets", WRITE),
    grant(Right::CreatePods, "apps", "statefulsets", WRITE),
    grant(Right::CreatePods, "batch", "cronjobs", WRITE),
    grant(Right::CreatePods, "batch", "jobs", WRITE),
    grant(Right::ExecuteInPods, "", "pods/attach", STREAM),
    grant(
        Right::ExecuteInPods,
        "",
        "pods/ephemeralcontainers",
        &["patch", "update"],
    ),
    grant(Right::ExecuteInPods, "", "pods/exec", STREAM),
    grant(
        Right::ActAsServiceAccounts,
        "",
        "serviceaccounts",
        &["impersonate"],
    ),
    grant(
        Right::ActAsServiceAccounts,
        "",
        "serviceaccounts/token",
        &["create"],
    ),
];

/// Reference to a role: its kind and name.
type RoleKey = (String, String);

/// Roles and bindings that apply in a namespace.
#[derive(Default)]
pub(super) struct NamespaceRbac {
    roles: BTreeMap<RoleKey, Vec<PolicyRule>>,
    bindings: Vec<NamedBinding>,
}

struct NamedBinding {
    kind: &'static str,
    name: String,
    role: RoleRef,
    subjects: Vec<Subject>,
}

impl NamespaceRbac {
    /// Adds the `Role`s and `RoleBinding`s of the namespace.
    pub(super) fn with_namespaced(mut self, roles: Vec<Role>, bindings: Vec<RoleBinding>) -> Self {
        let named = roles.into_iter().map(|role| {
            let key = ("Role".to_owned(), role.name_any());
            (key, role.rules.unwrap_or_default())
        });
        self.roles.extend(named);
        let bindings = bindings.into_iter().map(|binding| NamedBinding {
            kind: "RoleBinding",
            name: binding.name_any(),
            role: binding.role_ref,
            subjects: binding.subjects.unwrap_or_default(),
        });
        self.bindings.extend(bindings);
        self
    }

    /// Adds the `ClusterRole`s and `ClusterRoleBinding`s of the cluster. An aggregated `ClusterRole` contains the rules of the
    /// others.
    pub(super) fn with_cluster_scoped(
        mut self,
        roles: &[ClusterRole],
        bindings: &[ClusterRoleBinding],
    ) -> Self {
        let named = roles.iter().map(|role| {
            let key = ("ClusterRole".to_owned(), role.name_any());
            (key, role.rules.clone().unwrap_or_default())
        });
        self.roles.extend(named);
        let bindings = bindings.iter().map(|binding| NamedBinding {
            kind: "ClusterRoleBinding",
            name: binding.name_any(),
            role: binding.role_ref.clone(),
            subjects: binding.subjects.clone().unwrap_or_default(),
        });
        self.bindings.extend(bindings);
        self
    }
}

/// Subjects that can read what is in a namespace.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespaceSubjects {
    /// Users, groups and service accounts, sorted.
    pub(super) subjects: Vec<SubjectAccess>,
    /// Number of subjects of the control plane, which are not listed.
    pub(super) of_control_plane: usize,
}

/// Subject, as in a binding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct SubjectKey {
    /// `User`, `Group` or `ServiceAccount`.
    kind: String,
    /// Namespace of a service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

impl From<&Subject> for SubjectKey {
    fn from(subject: &Subject) -> Self {
        Self {
            kind: subject.kind.clone(),
            namespace: subject.namespace.clone(),
            name: subject.name.clone(),
        }
    }
}

impl fmt::Display for SubjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        match namespace {
            Some(namespace) => write!(formatter, "{kind} {namespace}/{name}"),
            None => write!(formatter, "{kind} {name}"),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct SubjectAccess {
    #[serde(flatten)]
    pub(super) subject: SubjectKey,
    /// Bindings that give the rights, sorted.
    pub(super) bindings: Vec<BindingAccess>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BindingAccess {
    kind: &'static str,
    name: String,
    role_kind: String,
    role_name: String,
    rights: BTreeSet<Right>,
}

impl fmt::Display for BindingAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            role_kind,
            role_name,
            rights,
        } = self;
        let rights: Vec<_> = rights.iter().map(|right| right.text()).collect();
        let rights = rights.join(", ");
        write!(
            formatter,
            "{kind} {name} ({role_kind} {role_name}: {rights})"
        )
    }
}

/// Returns the subjects that can read the Secrets of a namespace, directly or by a Pod or a service account, and by which
/// bindings. `workloads` are the names of CRDs whose objects run Pods of the author's choice, such as `vectors.example.com`.
///
/// # Caveats
///
/// A rule for single names counts as one for all. Subjects that may grant themselves rights (`bind`, `escalate`, or
/// `impersonate` on users and groups) are not found by that.
pub(super) fn subjects_with_access(
    rbac: &NamespaceRbac,
    workloads: &[String],
) -> NamespaceSubjects {
    let mut by_subject: BTreeMap<SubjectKey, Vec<BindingAccess>> = BTreeMap::new();
    let mut of_control_plane = BTreeSet::new();
    for binding in &rbac.bindings {
        let key = (binding.role.kind.clone(), binding.role.name.clone());
        let rules = rbac.roles.get(&key).map_or(&[][..], Vec::as_slice);
        let rights = rights(rules, workloads);
        let given_to: &[Subject] = if rights.is_empty() {
            &[]
        } else {
            &binding.subjects
        };
        for subject in given_to {
            let key = SubjectKey::from(subject);
            if is_of_control_plane(subject, &binding.role.name) {
                of_control_plane.insert(key);
                continue;
            }
            by_subject.entry(key).or_default().push(BindingAccess {
                kind: binding.kind,
                name: binding.name.clone(),
                role_kind: binding.role.kind.clone(),
                role_name: binding.role.name.clone(),
                rights: rights.clone(),
            });
        }
    }
    let subjects = by_subject.into_iter().map(|(subject, mut bindings)| {
        bindings.sort();
        SubjectAccess { subject, bindings }
    });
    NamespaceSubjects {
        subjects: subjects.collect(),
        of_control_plane: of_control_plane.len(),
    }
}

/// Returns the rights that the rules of a role give.
fn rights(rules: &[PolicyRule], workloads: &[String]) -> BTreeSet<Right> {
    let give = |group: &str, resource: &str, verbs: &[&str]| {
        let mut rules = rules.iter();
        rules.any(|rule| gives(rule, group, resource, verbs))
    };
    let on_built_in = GRANTS
        .iter()
        .filter(|grant| give(grant.group, grant.resource, grant.verbs))
        .map(|grant| grant.right);
    let on_workloads = workloads
        .iter()
        .filter_map(|name| name.split_once('.'))
        .filter(|(resource, group)| give(group, resource, WRITE))
        .map(|_| Right::CreatePods);
    on_built_in.chain(on_workloads).collect()
}

/// Returns true if a rule gives one of the verbs on a resource, as the RBAC authorizer of the API server compares them.
fn gives(rule: &PolicyRule, group: &str, resource: &str, verbs: &[&str]) -> bool {
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    let has_resource = rule.resources.iter().flatten().any(|given| {
        let of_any = given.strip_prefix("*/");
        given == "*" || given == resource || (of_any.is_some() && of_any == subresource)
    });
    let mut groups = rule.api_groups.iter().flatten();
    let mut given_verbs = rule.verbs.iter();
    has_resource
        && groups.any(|given| given == "*" || given == group)
        && given_verbs.any(|given| given == "*" || verbs.contains(&given.as_str()))
}

/// Returns true if a subject is a part of Kubernetes itself, or may do everything anyway (`system:masters`).
fn is_of_control_plane(subject: &Subject, role: &str) -> bool {
    if subject.kind == "ServiceAccount" {
        // Other programs run in this namespace, too.
        return subject.namespace.as_deref() == Some(KUBE_SYSTEM) && role.starts_with(RESERVED);
    }
    let is_other = |prefix: &&str| subject.name.starts_with(*prefix);
    subject.name.starts_with(RESERVED) && !NOT_OF_CONTROL_PLANE.iter().any(is_other)
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(objects: &Value) -> Vec<T> {
        serde_json::from_value(objects.clone()).expect("objects")
    }

    fn role(name: &str, group: &str, resource: &str, verb: &str) -> Value {
        let rule = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
        json!({"metadata": {"name": name}, "rules": [rule]})
    }

    fn binding(name: &str, role: [&str; 2], subjects: &[Value]) -> Value {
        let group = "rbac.authorization.k8s.io";
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": role[0], "name": role[1]},
            "subjects": subjects,
        })
    }

    fn subject(kind: &str, name: &str) -> Value {
        json!({"kind": kind, "name": name})
    }

    fn account(namespace: &str, name: &str) -> Value {
        json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
    }

    /// Returns the subjects as text, each with its bindings.
    fn found(rbac: &NamespaceRbac) -> (Vec<String>, usize) {
        let workloads = ["vectors.example.com".to_owned()];
        let found = subjects_with_access(rbac, &workloads);
        let subjects = found.subjects.iter().map(|access| {
            let bindings: Vec<_> = access.bindings.iter().map(ToString::to_string).collect();
            format!("{}: {}", access.subject, bindings.join(", "))
        });
        (subjects.collect(), found.of_control_plane)
    }

    #[test]
    fn subjects_are_listed_with_the_bindings_that_give_them_rights() {
        let jane = subject("User", "jane");
        let roles = [
            role("reader", "", "secrets", "get"),
            role("viewer", "", "pods", "get"),
        ];
        let role_bindings = [
            binding("a", ["Role", "reader"], std::slice::from_ref(&jane)),
            binding("b", ["Role", "viewer"], &[subject("User", "joe")]),
            binding("c", ["Role", "missing"], &[subject("User", "joe")]),
            // A Role and a ClusterRole may have the same name.
            binding(
                "d",
                ["ClusterRole", "viewer"],
                &[subject("Group", "ops"), account("ci", "deployer")],
            ),
        ];
        let cluster_roles = [
            role("viewer", "apps", "deployments", "patch"),
            role("all", "*", "*", "*"),
        ];
        let cluster_role_bindings = [binding("e", ["ClusterRole", "all"], &[jane])];
        let rbac = NamespaceRbac::default()
            .with_namespaced(read(&json!(roles)), read(&json!(role_bindings)))
            .with_cluster_scoped(
                &read::<ClusterRole>(&json!(cluster_roles)),
                &read::<ClusterRoleBinding>(&json!(cluster_role_bindings)),
            );
        let expected = [
            "Group ops: RoleBinding d (ClusterRole viewer: create Pods)",
            "ServiceAccount ci/deployer: RoleBinding d (ClusterRole viewer: create Pods)",
            "User jane: ClusterRoleBinding e (ClusterRole all: read Secrets, create Pods, execute commands in Pods, act as service accounts), RoleBinding a (Role reader: read Secrets)",
        ];
        assert_eq!(found(&rbac), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn subjects_of_the_control_plane_are_counted_and_groups_of_users_are_listed() {
        let subjects = [
            subject("Group", "system:masters"),
            subject("User", "system:kube-controller-manager"),
            subject("Group", "system:authenticated"),
            subject("Group", "system:serviceaccounts:ci"),
            subject("User", "system:anonymous"),
            account("kube-system", "addon"),
        ];
        let of_controllers = [account("kube-system", "job-controller")];
        let name = "system:controller:job-controller";
        let roles = [
            role("reader", "", "secrets", "list"),
            role(name, "", "pods", "create"),
        ];
        let bindings = [
            binding("a", ["ClusterRole", "reader"], &subjects),
            binding("b", ["ClusterRole", name], &of_controllers),
        ];
        let rbac = NamespaceRbac::default().with_cluster_scoped(
            &read::<ClusterRole>(&json!(roles)),
            &read::<ClusterRoleBinding>(&json!(bindings)),
        );
        let names: Vec<_> = subjects_with_access(&rbac, &[])
            .subjects
            .into_iter()
            .map(|access| access.subject.to_string())
            .collect();
        let expected = [
            "Group system:authenticated",
            "Group system:serviceaccounts:ci",
            "ServiceAccount kube-system/addon",
            "User system:anonymous",
        ];
        assert_eq!(names, expected);
        assert_eq!(found(&rbac).1, 3);
    }

    #[test]
    fn each_way_to_the_secrets_of_a_namespace_is_a_right() {
        let right = |group: &str, resource: &str, verb: &str| {
            let rule: PolicyRule = serde_json::from_value(
                json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]}),
            )
            .expect("a rule");
            let found = rights(&[rule], &["vectors.example.com".to_owned()]);
            found.into_iter().collect::<Vec<_>>()
        };
        for (group, resource, verb, expected) in [
            ("", "secrets", "watch", Some(Right::ReadSecrets)),
            ("", "secrets", "delete", None),
            ("apps", "secrets", "get", None),
            ("", "configmaps", "get", None),
            ("", "pods", "create", Some(Right::CreatePods)),
            ("", "pods", "get", None),
            ("batch", "cronjobs", "update", Some(Right::CreatePods)),
            ("example.com", "vectors", "create", Some(Right::CreatePods)),
            ("example.com", "vectors", "get", None),
            ("example.com", "lamps", "create", None),
            ("", "pods/exec", "get", Some(Right::ExecuteInPods)),
            ("", "*/exec", "create", Some(Right::ExecuteInPods)),
            ("", "pods/log", "get", None),
            (
                "",
                "serviceaccounts/token",
                "create",
                Some(Right::ActAsServiceAccounts),
            ),
            (
                "",
                "serviceaccounts",
                "impersonate",
                Some(Right::ActAsServiceAccounts),
            ),
            ("", "serviceaccounts", "create", None),
        ] {
            let found = right(group, resource, verb);
            assert_eq!(
                found,
                Vec::from_iter(expected),
                "{verb} {resource} in {group}"
            );
        }
    }
}
