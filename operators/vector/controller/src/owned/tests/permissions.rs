//! Types, tokens and permissions of the owned objects.

use std::collections::BTreeSet;

use lockstep_vector_api::WorkloadRole;
use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind, check_in_pod, event_pipeline, listener, validator};
use crate::owned::{ClusterScopedNames, granted_rules, owned_types};

/// Returns inputs that together have all types of owned objects.
fn all_inputs(kind: Kind) -> Vec<Input<'static>> {
    let prefix = if kind == Kind::Vector { "agent." } else { "" };
    let mut input = Input::new(kind)
        .with(&format!("{prefix}api"), json!({"enabled": true}))
        .with(&format!("{prefix}internalMetrics"), json!(true))
        .with(
            &format!("{prefix}configCheck"),
            json!({"mode": "Pod", "warm": true}),
        );
    input.publication.validator = Some(validator());
    input.publication.checks = vec![check_in_pod()];
    if kind == Kind::Vector {
        return vec![input];
    }
    input.publication.services = vec![listener("app", "in", 9000), event_pipeline(None)];
    input.publication.reads_kubernetes_api = true;
    let mut own_events = input.clone();
    own_events.publication.services = vec![event_pipeline(Some("team"))];
    let input = input
        .with("autoscaling.enabled", json!(true))
        .with("podDisruptionBudget.enabled", json!(true));
    let stateful = input.clone().with("persistence.enabled", json!(true));
    vec![input, own_events, stateful]
}

fn workload_kind(kind: Kind) -> WorkloadRole {
    match kind {
        Kind::Vector => WorkloadRole::Agent,
        Kind::VectorAggregator | Kind::ClusterVectorAggregator => WorkloadRole::Aggregator,
    }
}

#[test]
fn the_declared_types_are_those_of_the_owned_objects() {
    for kind in Kind::ALL {
        let types = owned_types(workload_kind(kind), true);
        let declared: BTreeSet<_> = types
            .iter()
            .map(|type_| {
                let resource = type_.api_resource();
                let is_namespaced = type_.is_namespaced();
                (
                    resource.api_version.clone(),
                    resource.kind.clone(),
                    is_namespaced,
                )
            })
            .collect();
        assert_eq!(declared.len(), types.len());
        let mut found = BTreeSet::new();
        for input in all_inputs(kind) {
            for child in input.objects().children {
                let text = |value: &Value| value.as_str().expect("a text").to_owned();
                let is_namespaced = child["metadata"].get("namespace").is_some();
                found.insert((
                    text(&child["apiVersion"]),
                    text(&child["kind"]),
                    is_namespaced,
                ));
            }
        }
        // Only events in the namespace of the aggregator are collected with a Role.
        if kind == Kind::ClusterVectorAggregator {
            let of_group = "rbac.authorization.k8s.io/v1".to_owned();
            for role in ["Role", "RoleBinding"] {
                found.insert((of_group.clone(), role.to_owned(), true));
            }
        }
        assert_eq!(declared, found, "{kind:?}");
    }
}

#[test]
fn no_child_is_desired_twice() {
    for kind in Kind::ALL {
        for input in all_inputs(kind) {
            let mut names = BTreeSet::new();
            for child in input.objects().children {
                let key = format!("{} {}", child["kind"], child["metadata"]["name"]);
                assert!(names.insert(key), "{child}");
            }
        }
    }
}

#[test]
fn the_controller_has_every_permission_that_it_grants() {
    for kind in Kind::ALL {
        let own = granted_rules(workload_kind(kind));
        let mut granted = 0;
        for input in all_inputs(kind) {
            for child in input.objects().children {
                for rule in child["rules"].as_array().into_iter().flatten() {
                    assert!(own.contains(rule), "{rule}");
                    granted += 1;
                }
            }
        }
        assert!(granted > 0, "{kind:?}");
    }
}

#[test]
fn an_aggregator_has_permissions_and_a_token_only_if_it_reads_the_kubernetes_api() {
    for kind in Kind::AGGREGATORS {
        for reads in [false, true] {
            let mut input = Input::new(kind);
            input.publication.reads_kubernetes_api = reads;
            let template = input.template("Deployment");
            let token = template["spec"].get("automountServiceAccountToken");
            assert_eq!(token, reads.then_some(&json!(true)));
            for role in ["ClusterRole", "ClusterRoleBinding"] {
                let is_granted = input.child(role, "logs-aggregator").is_some();
                assert_eq!(is_granted, reads, "{kind:?} {role}");
            }
            let account = input.child("ServiceAccount", "logs-aggregator");
            assert_eq!(account.expect("one")["automountServiceAccountToken"], false);
        }
    }
    let agents = Input::new(Kind::Vector);
    let account = agents.child("ServiceAccount", "logs-agent").expect("one");
    for gives_token in [&account, &agents.template("DaemonSet")["spec"]] {
        assert_eq!(gives_token.get("automountServiceAccountToken"), None);
    }
}

#[test]
fn the_event_collector_reads_the_events_of_other_namespaces_only_if_it_must() {
    for (kind, namespace, expected) in [
        (Kind::VectorAggregator, Some("team"), "Role"),
        (Kind::VectorAggregator, Some("another"), "ClusterRole"),
        (Kind::ClusterVectorAggregator, None, "ClusterRole"),
    ] {
        let mut input = Input::new(kind);
        input.publication.services = vec![event_pipeline(namespace)];
        for role in ["Role", "ClusterRole"] {
            let name = "logs-event-collector";
            let rules = input.child(role, name).map(|role| role["rules"].clone());
            let events =
                json!([{"apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"]}]);
            assert_eq!(rules, (role == expected).then_some(events), "{kind:?}");
            let binding = input.child(&format!("{role}Binding"), name);
            let subjects = binding.map(|binding| binding["subjects"][0]["name"].clone());
            assert_eq!(subjects, (role == expected).then_some(json!(name)));
        }
    }
}

#[test]
fn cluster_scoped_names_can_contain_the_namespace() {
    let mut input = Input::new(Kind::Vector);
    assert!(input.child("ClusterRole", "logs-agent").is_some());
    input.cluster.cluster_scoped_names = ClusterScopedNames::WithNamespace;
    let name = "team-logs-agent";
    assert!(input.child("ClusterRole", name).is_some());
    let binding = input.child("ClusterRoleBinding", name).expect("a binding");
    assert_eq!(binding["roleRef"]["name"], name);
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": "logs-agent", "namespace": "team"}])
    );
}

#[test]
fn a_pod_monitor_needs_the_prometheus_operator() {
    for kind in Kind::ALL {
        let mut input = all_inputs(kind).swap_remove(0);
        assert!(input.child("PodMonitor", kind.object_name()).is_some());
        input.cluster.has_pod_monitors = false;
        assert!(input.child("PodMonitor", kind.object_name()).is_none());
        let types = owned_types(workload_kind(kind), false);
        let has_type = types
            .iter()
            .any(|it| it.api_resource().kind == "PodMonitor");
        assert!(!has_type, "{kind:?}");
    }
}

#[test]
fn labels_of_users_change_no_selector_and_no_label_of_the_operator() {
    for kind in Kind::ALL {
        let prefix = if kind == Kind::Vector { "agent." } else { "" };
        let component = "app.kubernetes.io/component";
        let labels = json!({component: "mine", "team": "a"});
        for input in all_inputs(kind) {
            let before = input.objects().children;
            let after = input.with(&format!("{prefix}labels"), labels.clone());
            let after = after.objects().children;
            let mut selectors = 0;
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(before["spec"]["selector"], after["spec"]["selector"]);
                selectors += usize::from(!before["spec"]["selector"].is_null());
                for path in ["/metadata/labels", "/spec/template/metadata/labels"] {
                    let label = |child: &Value| child.pointer(path)?.get(component).cloned();
                    assert_eq!(label(before), label(after), "{path} {after}");
                }
            }
            assert!(selectors > 1, "{kind:?}");
        }
    }
}
