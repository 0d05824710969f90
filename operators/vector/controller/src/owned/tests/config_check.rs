//! Pods that check configurations.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_controller::OwnedType;
use serde_json::{Value, json};

use crate::owned::tests::{CHECK, Input, Kind, check_in_pod};

fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Vector => "agent.",
        Kind::VectorAggregator | Kind::ClusterVectorAggregator => "",
    }
}

/// Returns an input with a check in a Pod.
fn checking(kind: Kind) -> Input<'static> {
    let mode = format!("{}configCheck", prefix(kind));
    let mut input = Input::new(kind).with(&mode, json!({"mode": "Pod"}));
    input.publication.checks = vec![check_in_pod()];
    input
}

fn pod(input: &Input<'_>) -> Value {
    input.child("Pod", CHECK).expect("a Pod")
}

#[test]
fn the_pod_runs_vector_validate_on_its_own_configuration() {
    for kind in Kind::ALL {
        let input = checking(kind);
        let pod = pod(&input);
        let spec = &pod["spec"];
        let container = &spec["containers"][0];
        let args = [
            "validate",
            "--skip-healthchecks",
            "--config-dir",
            "/etc/vector",
        ];
        assert_eq!(container["args"], json!(args));
        assert_eq!(container["image"], "timberio/vector:0.57.0-distroless-libc");
        assert_eq!(
            container["terminationMessagePolicy"],
            "FallbackToLogsOnError"
        );
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(spec["activeDeadlineSeconds"], 300);
        let account = format!("{}-configcheck", kind.object_name());
        assert_eq!(spec["serviceAccountName"], account);
        let roles = input.objects().children.into_iter();
        let mut subjects =
            roles.flat_map(|it| it["subjects"].as_array().cloned().unwrap_or_default());
        assert!(
            subjects.all(|it| it["name"] != account),
            "it has no permissions"
        );
        let volumes = spec["volumes"].as_array().expect("volumes");
        assert!(volumes.contains(&json!({"name": "config", "secret": {"secretName": CHECK}})));
        assert!(volumes.contains(&json!({"name": "data", "emptyDir": {}})));
        let secret = input.child("Secret", CHECK).expect("a Secret");
        assert_eq!(secret["data"], json!({"agent.json": "eyJzaW5rcyI6e319"}));
    }
}

#[test]
fn no_selector_of_the_workload_selects_the_pod() {
    for kind in Kind::ALL {
        // Not even with labels of a user.
        let own =
            json!({"mode": "Pod", "labels": {"app.kubernetes.io/component": "Agent", "a": "b"}});
        let input = checking(kind).with(&format!("{}configCheck", prefix(kind)), own);
        let labels = &pod(&input)["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/name"], "vector-configcheck");
        assert_eq!(labels["app.kubernetes.io/component"], "ConfigCheck");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "vector-operator");
        assert_eq!(labels["a"], "b");
        let workload = input.child(kind.workload(), kind.object_name());
        let selector = workload.expect("a workload")["spec"]["selector"]["matchLabels"].clone();
        let selector = selector.as_object().expect("labels").clone();
        assert!(selector.iter().any(|(name, value)| labels[name] != *value));
    }
}

#[test]
fn the_pod_has_the_environment_and_secrets_and_a_volume_for_each_mount() {
    for kind in Kind::ALL {
        let of = |field: &str| format!("{}{field}", prefix(kind));
        let mut input = checking(kind)
            .with(&of("env"), json!([{"name": "A", "value": "b"}]))
            .with(&of("envFrom"), json!([{"configMapRef": {"name": "c"}}]))
            .with(&of("envVarInterpolation"), json!(true))
            .with(&of("hostNetwork"), json!(true))
            .with(
                &of("volumeMounts"),
                json!([{"name": "claimed", "mountPath": "/claimed"}]),
            )
            .with(
                &of("volumes"),
                json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]),
            );
        let secrets = &mut input.publication.checks[0].secrets;
        secrets.insert("key".to_owned(), b"value".to_vec());
        let pod = pod(&input);
        let container = &pod["spec"]["containers"][0];
        let env = container["env"].as_array().expect("variables");
        assert!(env.contains(&json!({"name": "A", "value": "b"})));
        assert!(env.iter().any(|it| it["name"] == "VECTOR_SELF_NODE_NAME"));
        assert_eq!(
            container["envFrom"],
            json!([{"configMapRef": {"name": "c"}}])
        );
        let args = container["args"].as_array().expect("arguments");
        assert!(args.contains(&json!("--dangerously-allow-env-var-interpolation")));
        assert_eq!(pod["spec"]["hostNetwork"], Value::Null);
        let volumes = pod["spec"]["volumes"].as_array().expect("volumes");
        let by_name: BTreeMap<_, _> = volumes.iter().map(|it| (it["name"].as_str(), it)).collect();
        assert_eq!(by_name.len(), volumes.len(), "no name occurs twice");
        assert_eq!(
            by_name[&Some("data")]["emptyDir"],
            json!({}),
            "no claim is used twice"
        );
        let name = format!("{CHECK}-secret-assets");
        assert_eq!(
            by_name[&Some("secret-assets")]["secret"]["secretName"],
            name
        );
        assert!(input.child("Secret", &name).is_some());
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        let mounted: BTreeSet<_> = mounts.iter().map(|it| it["name"].as_str()).collect();
        assert!(mounted.contains(&Some("claimed")));
        assert!(
            mounted.iter().all(|it| by_name.contains_key(it)),
            "{mounted:?}"
        );
    }
}

#[test]
fn a_compressed_configuration_is_unpacked_before_the_check() {
    for kind in Kind::ALL {
        let compressed = format!("{}compressConfigFile", prefix(kind));
        let pod = pod(&checking(kind).with(&compressed, json!(true)));
        assert_eq!(
            pod["spec"]["initContainers"][0]["name"],
            "init-config-reloader"
        );
        let volumes = pod["spec"]["volumes"].as_array().expect("volumes");
        let archive = json!({"name": "app-config-compress", "secret": {"secretName": CHECK}});
        assert!(volumes.contains(&archive));
    }
}

#[test]
fn pods_are_watched_only_where_they_may_exist() {
    let types = crate::owned::owned_types(lockstep_vector_api::WorkloadRole::Agent, false);
    let pods: Vec<&OwnedType> = types
        .iter()
        .filter(|it| it.api_resource().kind == "Pod")
        .collect();
    assert_eq!(pods.len(), 1);
    for (spec, status, expected) in [
        (json!({}), json!({}), false),
        (
            json!({"configCheck": {"mode": "InProcess"}}),
            json!({}),
            false,
        ),
        (json!({"configCheck": {"mode": "Both"}}), json!({}), true),
        (
            json!({"agent": {"configCheck": {"mode": "Pod"}}}),
            json!({}),
            true,
        ),
        (
            json!({"configCheck": {"mode": "Pod", "disabled": true}}),
            json!({}),
            false,
        ),
        // The mode was changed a moment ago.
        (json!({}), json!({"checkPods": 1}), true),
    ] {
        let workload = json!({"metadata": {"namespace": "n"}, "spec": spec, "status": status});
        let found = crate::owned::owned_types::namespaces_of_check_pods(&workload);
        assert_eq!(found == ["n"], expected, "{workload}");
    }
}
