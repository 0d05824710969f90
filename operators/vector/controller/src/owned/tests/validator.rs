//! Pod that keeps running for checks of configurations.

use std::collections::BTreeMap;

use lockstep_vector_api::WorkloadRole;
use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind, check_in_pod, validator};
use crate::owned::{ConfigurationCheck, owned_types, validator_labels};

fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Vector => "agent.",
        Kind::VectorAggregator | Kind::ClusterVectorAggregator => "",
    }
}

/// Returns an input with a validator.
fn warm(kind: Kind) -> Input<'static> {
    let check = format!("{}configCheck", prefix(kind));
    let mut input = Input::new(kind).with(&check, json!({"mode": "Pod", "warm": true}));
    input.publication.validator = Some(validator());
    input
}

fn name(kind: Kind) -> String {
    format!("{}-validator", kind.object_name())
}

fn template(input: &Input<'_>) -> Value {
    let deployment = input
        .child("Deployment", &name(input.kind))
        .expect("a Deployment");
    deployment["spec"]["template"].clone()
}

#[test]
fn the_pod_runs_vector_as_a_pod_does_that_checks_one_configuration() {
    for kind in Kind::ALL {
        let of = |field: &str| format!("{}{field}", prefix(kind));
        let mut input = warm(kind)
            .with(&of("env"), json!([{"name": "A", "value": "b"}]))
            .with(&of("envFrom"), json!([{"configMapRef": {"name": "c"}}]))
            .with(&of("envVarInterpolation"), json!(true))
            .with(&of("imagePullSecrets"), json!([{"name": "pull"}]))
            .with(&of("containerSecurityContext"), json!({"runAsUser": 7}))
            .with(&of("compressConfigFile"), json!(true));
        input.publication.checks = vec![ConfigurationCheck {
            files: BTreeMap::new(),
            ..check_in_pod()
        }];
        let check = input.child("Pod", &check_in_pod().name).expect("a Pod");
        let template = template(&input);
        let (once, warm) = (&check["spec"], &template["spec"]);
        for field in ["serviceAccountName", "imagePullSecrets", "securityContext"] {
            assert_eq!(once[field], warm[field], "{field}");
        }
        let (once, warm) = (&once["containers"][0], &warm["containers"][0]);
        for field in [
            "image",
            "env",
            "envFrom",
            "securityContext",
            "imagePullPolicy",
        ] {
            assert_eq!(once[field], warm[field], "{field}");
        }
        // The same arguments, apart from the directory of the configuration.
        let args = warm["args"].as_array().expect("arguments").iter();
        let args: Vec<_> = args.skip_while(|it| **it != json!("--")).skip(1).collect();
        let mut of_check = once["args"].as_array().expect("arguments").clone();
        of_check.drain(2..4);
        assert_eq!(json!(args), json!(of_check));
        let names = ["init-config-reloader", "config-reloader"];
        let reloaders = template.to_string();
        assert!(names.iter().all(|it| !reloaders.contains(it)), "{template}");
    }
}

#[test]
fn the_program_comes_from_an_init_container_with_the_image_of_the_controller() {
    for kind in Kind::ALL {
        let spec = &template(&warm(kind))["spec"];
        let init = &spec["initContainers"][0];
        assert_eq!(init["image"], "lockstep:1");
        assert_eq!(
            init["args"],
            json!(["vector", "copy-program", "/lockstep/program"])
        );
        let server = &spec["containers"][0];
        let command = [
            "/lockstep/program/loader",
            "--library-path",
            "/lockstep/program/lib",
            "/lockstep/program/lockstep",
        ];
        assert_eq!(server["command"], json!(command));
        assert_eq!(server["resources"]["limits"], json!({"memory": "512Mi"}));
        assert_eq!(server["readinessProbe"]["httpGet"]["scheme"], "HTTPS");
        let volumes = spec["volumes"].as_array().expect("volumes");
        let by_name: BTreeMap<_, _> = volumes.iter().map(|it| (it["name"].as_str(), it)).collect();
        assert_eq!(by_name.len(), volumes.len(), "no name occurs twice");
        let work = by_name[&Some("lockstep-work")];
        assert_eq!(work["emptyDir"]["medium"], "Memory");
        assert_eq!(by_name[&Some("config")]["emptyDir"], json!({}));
        assert_eq!(by_name[&Some("data")]["emptyDir"], json!({}));
        let secret = &by_name[&Some("lockstep-credentials")]["secret"]["secretName"];
        assert_eq!(*secret, name(kind));
        let mounts = server["volumeMounts"].as_array().expect("mounts").iter();
        for mount in mounts.chain(init["volumeMounts"].as_array().expect("mounts")) {
            assert!(by_name.contains_key(&mount["name"].as_str()), "{mount}");
        }
        let stored = input_secret(kind);
        assert_eq!(
            stored["data"],
            json!({"tls.crt": "Yw==", "tls.key": "aw==", "token": "dA=="})
        );
    }
}

fn input_secret(kind: Kind) -> Value {
    warm(kind).child("Secret", &name(kind)).expect("a Secret")
}

#[test]
fn only_pods_of_the_controller_may_connect() {
    for kind in Kind::ALL {
        let mut input = warm(kind);
        let policy = |input: &Input<'_>| {
            let policy = input
                .child("NetworkPolicy", &name(kind))
                .expect("a NetworkPolicy");
            policy["spec"].clone()
        };
        let spec = policy(&input);
        assert_eq!(spec["policyTypes"], json!(["Ingress"]));
        let from = json!([{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "system"}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "lockstep"}},
        }]);
        let ports = json!([{"port": 8443, "protocol": "TCP"}]);
        assert_eq!(spec["ingress"], json!([{"from": from, "ports": ports}]));
        let labels = &template(&input)["metadata"]["labels"];
        let selector = spec["podSelector"]["matchLabels"]
            .as_object()
            .expect("labels");
        assert!(
            selector
                .iter()
                .all(|(label, value)| labels[label] == *value)
        );
        // The controller runs in no Pod.
        input
            .publication
            .validator
            .as_mut()
            .expect("a validator")
            .clients = None;
        assert_eq!(policy(&input)["ingress"], json!([{"ports": ports}]));
    }
}

#[test]
fn no_selector_selects_pods_of_another_purpose() {
    let mut selectors = Vec::new();
    for kind in [Kind::Vector, Kind::VectorAggregator] {
        let input = warm(kind);
        for child in input.objects().children {
            let selector = &child["spec"]["selector"]["matchLabels"];
            if let Some(selector) = selector.as_object() {
                selectors.push((selector.clone(), child["spec"]["template"].clone()));
            }
        }
    }
    assert_eq!(selectors.len(), 4, "{selectors:?}");
    for (index, (selector, _)) in selectors.iter().enumerate() {
        for (other, (_, template)) in selectors.iter().enumerate() {
            let labels = &template["metadata"]["labels"];
            let selects = selector
                .iter()
                .all(|(label, value)| labels[label] == *value);
            assert_eq!(selects, index == other, "{selector:?} {labels}");
        }
    }
}

#[test]
fn a_pod_of_another_template_is_not_asked() {
    let labels = |input: &Input<'_>| {
        let workload = input.spec["agent"].clone();
        let workload = serde_json::from_value(workload).expect("a workload");
        let validator = input.publication.validator.clone().expect("a validator");
        json!(validator_labels(
            WorkloadRole::Agent,
            "logs",
            "team",
            &workload,
            &input.cluster,
            &validator
        ))
    };
    let first = warm(Kind::Vector);
    let asked = labels(&first);
    let of_pods = &template(&first)["metadata"]["labels"];
    let has_all = |of_pods: &Value, asked: &Value| {
        let asked = asked.as_object().expect("labels");
        asked.iter().all(|(label, value)| of_pods[label] == *value)
    };
    assert!(has_all(of_pods, &asked), "{of_pods} {asked}");
    let changed = [
        ("agent.image", json!("vector:1")),
        ("agent.env", json!([{"name": "A", "value": "b"}])),
        ("agent.configCheck.image", json!("vector:2")),
        ("agent.volumes", json!([{"name": "more", "emptyDir": {}}])),
        ("agent.envVarInterpolation", json!(true)),
    ];
    for (field, value) in changed {
        let changed = warm(Kind::Vector).with(field, value);
        assert!(!has_all(of_pods, &labels(&changed)), "{field}");
        assert!(has_all(
            &template(&changed)["metadata"]["labels"],
            &labels(&changed)
        ));
    }
    // New credentials and another number of Pods that run Vector restart nothing.
    let mut renewed = warm(Kind::Vector);
    renewed
        .publication
        .validator
        .as_mut()
        .expect("a validator")
        .token = "new".to_owned();
    assert_eq!(template(&renewed), template(&first));
}

#[test]
fn without_warm_there_is_no_validator() {
    for kind in Kind::ALL {
        for check in [
            json!({"mode": "Pod"}),
            json!({"mode": "InProcess", "warm": true}),
            json!({"mode": "Pod", "warm": true, "disabled": true}),
        ] {
            let input = warm(kind).with(&format!("{}configCheck", prefix(kind)), check);
            for object in ["Deployment", "NetworkPolicy", "Secret"] {
                assert_eq!(input.child(object, &name(kind)), None);
            }
        }
    }
}

#[test]
fn network_policies_are_watched_only_where_they_may_exist() {
    let types = owned_types(WorkloadRole::Agent, false);
    let kinds = types.iter().map(|it| it.api_resource().kind.clone());
    let kinds: Vec<_> = kinds
        .filter(|it| it == "NetworkPolicy" || it == "Deployment")
        .collect();
    assert_eq!(kinds, ["NetworkPolicy", "Deployment"]);
    for (spec, status, expected) in [
        (json!({"configCheck": {"mode": "Pod"}}), json!({}), false),
        (
            json!({"configCheck": {"mode": "Both", "warm": true}}),
            json!({}),
            true,
        ),
        (
            json!({"agent": {"configCheck": {"mode": "Pod", "warm": true}}}),
            json!({}),
            true,
        ),
        // It was switched off a moment ago.
        (json!({}), json!({"validator": "Ready"}), true),
    ] {
        let workload = json!({"metadata": {"namespace": "n"}, "spec": spec, "status": status});
        let found = crate::owned::owned_types::namespaces_of_validators(&workload);
        assert_eq!(found == ["n"], expected, "{workload}");
    }
}
