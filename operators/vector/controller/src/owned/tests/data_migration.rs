//! Tests of the init container that moves data.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind};
use crate::owned::{
    DATA_LAYOUT, DATA_MIGRATION, MovedData, PreviousPublication, live_suffix, migration_image,
};

/// Returns an input whose components get other names.
fn migrating() -> Input<'static> {
    let mut input = Input::new(Kind::Vector);
    input.publication.secret_suffix = Some("underscores".to_owned());
    input.publication.previous = Some(PreviousPublication {
        secret_suffix: None,
        files: BTreeMap::from([("agent.json".to_owned(), b"old".to_vec())]),
        annotation: "{}".to_owned(),
    });
    input.publication.moved_data = Some(MovedData {
        image: "lockstep:1".to_owned(),
        moves: b"list".to_vec(),
    });
    input
}

fn container(input: &Input<'_>) -> Value {
    input.template("DaemonSet")["spec"]["initContainers"][0].clone()
}

#[test]
fn old_and_new_pods_have_a_configuration_each_until_all_are_replaced() {
    let input = migrating();
    let data = |input: &Input<'_>, name| {
        let secret = input.child("Secret", name);
        secret.map(|secret| secret["data"].clone())
    };
    assert_eq!(
        data(&input, "logs-agent"),
        Some(json!({"agent.json": "b2xk"}))
    );
    let new = Some(json!({"agent.json": "e30="}));
    assert_eq!(data(&input, "logs-agent-underscores"), new);
    let list = Some(json!({"moves.json.gz": "bGlzdA=="}));
    assert_eq!(data(&input, "logs-agent-data-moves"), list);
    let daemon_set = input.child("DaemonSet", "logs-agent").expect("a DaemonSet");
    assert_eq!(daemon_set["metadata"]["annotations"][DATA_MIGRATION], "{}");
    assert_eq!(live_suffix(&daemon_set, "logs-agent"), Some("underscores"));
    assert_eq!(migration_image(&daemon_set), Some("lockstep:1"));

    // The end of the migration does not change the template, and so replaces no Pod.
    let mut finished = input.clone();
    finished.publication.previous = None;
    assert_eq!(finished.template("DaemonSet"), input.template("DaemonSet"));
    assert_eq!(data(&finished, "logs-agent"), None);
    assert_eq!(data(&finished, "logs-agent-underscores"), new);
    let daemon_set = finished
        .child("DaemonSet", "logs-agent")
        .expect("a DaemonSet");
    assert_eq!(daemon_set["metadata"]["annotations"], Value::Null);
}

#[test]
fn a_divided_configuration_is_mounted_by_its_new_name_too() {
    let mut input = migrating();
    let files = ["agent.json", "agent-1.json"].map(|name| (name.to_owned(), b"{}".to_vec()));
    input.publication.files = files.into();
    let daemon_set = input.child("DaemonSet", "logs-agent").expect("a DaemonSet");
    assert_eq!(live_suffix(&daemon_set, "logs-agent"), Some("underscores"));
    input.publication.secret_suffix = None;
    let daemon_set = input.child("DaemonSet", "logs-agent").expect("a DaemonSet");
    assert_eq!(live_suffix(&daemon_set, "logs-agent"), None);
}

#[test]
fn the_workload_says_with_which_layout_its_pods_run() {
    for kind in Kind::ALL {
        let mut input = Input::new(kind);
        input.publication.data_layout = Some("dashes".to_owned());
        let workload = input.child(kind.workload(), kind.object_name());
        let metadata = &workload.expect("a workload")["metadata"];
        assert_eq!(metadata["annotations"][DATA_LAYOUT], "dashes");
        let mut other = input.clone();
        other.publication.data_layout = Some("underscores".to_owned());
        assert_eq!(
            other.template(kind.workload()),
            input.template(kind.workload())
        );
    }
}

#[test]
fn the_init_container_uses_the_data_as_the_user_of_vector() {
    let mounts = |input: &Input<'_>| {
        let mounts = container(input)["volumeMounts"].clone();
        let mounts = mounts.as_array().expect("mounts").clone();
        let names = mounts
            .iter()
            .map(|it| it["name"].as_str().expect("a name").to_owned());
        names.collect::<Vec<_>>()
    };
    let input = migrating();
    assert_eq!(mounts(&input), ["data", "lockstep-data-moves"]);
    let user = |input: &Input<'_>| container(input)["securityContext"].clone();
    assert_eq!(user(&input), json!({"runAsUser": 0}));
    let own = input
        .clone()
        .with("agent.containerSecurityContext", json!({"runAsUser": 5}));
    assert_eq!(user(&own), json!({"runAsUser": 5}));
    let of_pod = input
        .clone()
        .with("agent.podSecurityContext", json!({"runAsUser": 5}));
    assert_eq!(user(&of_pod), json!({}));
    for path in ["agent.containerSecurityContext", "agent.podSecurityContext"] {
        let forbidden = input.clone().with(path, json!({"runAsNonRoot": true}));
        assert_eq!(user(&forbidden)["runAsUser"], Value::Null);
    }
    let elsewhere = json!([{"name": "own", "mountPath": "/vector-data-dir"}]);
    let elsewhere = input.with("agent.volumeMounts", elsewhere);
    assert_eq!(mounts(&elsewhere), ["own", "lockstep-data-moves"]);
}

#[test]
fn a_compressed_configuration_is_mounted_by_its_new_name_too() {
    let input = migrating().with("agent.compressConfigFile", json!(true));
    let daemon_set = input.child("DaemonSet", "logs-agent").expect("a DaemonSet");
    assert_eq!(live_suffix(&daemon_set, "logs-agent"), Some("underscores"));
    let init = &daemon_set["spec"]["template"]["spec"]["initContainers"];
    assert_eq!(init[0]["name"], "migrate-data");
    assert_eq!(init[1]["name"], "init-config-reloader");
    assert!(input.child("Secret", "logs-agent").is_some());
    assert!(input.child("Secret", "logs-agent-underscores").is_some());
}
