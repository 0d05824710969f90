//! Pod templates: when they change, and what users cannot override.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind, listener};
use crate::owned::{GLOBAL_OPTIONS_CHECKSUM, OwnedObjectsError};

/// Returns the path of a field of the Pods.
fn path(kind: Kind, field: &str) -> String {
    match kind {
        Kind::Vector => format!("agent.{field}"),
        Kind::VectorAggregator | Kind::ClusterVectorAggregator => field.to_owned(),
    }
}

/// Returns an input whose pipelines refer to a Secret.
fn with_secrets(kind: Kind) -> Input<'static> {
    let mut input = Input::new(kind);
    let value = b"password".to_vec();
    input.publication.secrets = BTreeMap::from([("key".to_owned(), value)]);
    input
}

fn mounts(template: &Value) -> Vec<(String, String)> {
    let mounts = template["spec"]["containers"][0]["volumeMounts"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mounts = mounts.expect("mounts").iter();
    mounts
        .map(|mount| (text(&mount["name"]), text(&mount["mountPath"])))
        .collect()
}

#[test]
fn a_volume_with_the_name_of_a_default_one_replaces_it() {
    let volatile = json!({"name": "journal", "hostPath": {"path": "/run/log/journal"}});
    let input = Input::new(Kind::Vector).with("agent.volumes", json!([volatile]));
    let template = input.template(Kind::Vector.workload());
    let spec = &template["spec"];
    let journals = spec["volumes"].as_array().expect("volumes").iter();
    let journals: Vec<_> = journals
        .filter(|volume| volume["name"] == "journal")
        .collect();
    assert_eq!(journals, [&volatile]);
    let mounts = spec["containers"][0]["volumeMounts"].as_array();
    let mount = json!({"name": "journal", "mountPath": "/run/log/journal"});
    assert!(mounts.expect("mounts").contains(&mount));
}

#[test]
fn a_change_of_pipelines_never_restarts_pods() {
    for kind in Kind::ALL {
        let before = Input::new(kind);
        let mut after = before.clone();
        for content in after.publication.files.values_mut() {
            *content = br#"{"sources": {}}"#.to_vec();
        }
        after.publication.services = vec![listener("another", "in", 9001)];
        let template = |input: &Input<'_>| input.template(kind.workload());
        assert_ne!(before.objects(), after.objects(), "{kind:?}");
        assert_eq!(template(&before), template(&after), "{kind:?}");
        // A Secret that another pipeline refers to is one more file of a volume that exists.
        let before = with_secrets(kind);
        let mut after = before.clone();
        let secrets = &mut after.publication.secrets;
        secrets.insert("another".to_owned(), b"value".to_vec());
        assert_eq!(template(&before), template(&after), "{kind:?}");
    }
}

#[test]
fn options_that_vector_does_not_reload_restart_pods() {
    for kind in Kind::ALL {
        let mut input = Input::new(kind);
        let annotation = |input: &Input<'_>| {
            let template = input.template(kind.workload());
            template["metadata"]["annotations"][GLOBAL_OPTIONS_CHECKSUM].clone()
        };
        assert_eq!(annotation(&input), "1f", "{kind:?}");
        input.publication.roll_hash = "20".to_owned();
        // An annotation of a user does not hide the change.
        let own = json!({GLOBAL_OPTIONS_CHECKSUM: "mine"});
        let input = input.with(&path(kind, "annotations"), own);
        assert_eq!(annotation(&input), "20", "{kind:?}");
    }
}

/// The template of Pods that another operator has created has no fingerprint.
#[test]
fn adopted_pods_are_restarted_when_their_options_change() {
    for kind in Kind::ALL {
        let mut input = Input::new(kind);
        input.publication.adopted_hash = Some("1f".to_owned());
        let found = |input: &Input<'_>| {
            let workload = input.child(kind.workload(), kind.object_name());
            let workload = workload.expect("a workload");
            let template = &workload["spec"]["template"]["metadata"]["annotations"];
            let own = &workload["metadata"]["annotations"][GLOBAL_OPTIONS_CHECKSUM];
            (own.clone(), template[GLOBAL_OPTIONS_CHECKSUM].clone())
        };
        let mine = json!({GLOBAL_OPTIONS_CHECKSUM: "mine"});
        for mut input in [input.clone(), input.with(&path(kind, "annotations"), mine)] {
            assert_eq!(found(&input), (json!("1f"), Value::Null), "{kind:?}");
            input.publication.roll_hash = "20".to_owned();
            assert_eq!(found(&input), (json!("1f"), json!("20")), "{kind:?}");
        }
    }
}

#[test]
fn the_directory_of_secrets_cannot_be_overridden() {
    for kind in Kind::ALL {
        let user_mounts = json!([
            {"name": "secret-assets", "mountPath": "/mine"},
            {"name": "exact", "mountPath": "/etc/vector/secrets"},
            {"name": "slashes", "mountPath": "/etc//vector/./secrets/"},
            {"name": "below", "mountPath": "/etc/vector/secrets/key"},
            {"name": "sibling", "mountPath": "/etc/vector/secrets-of-mine"},
            {"name": "above", "mountPath": "/etc"},
        ]);
        let input = with_secrets(kind)
            .with(
                &path(kind, "volumes"),
                json!([{"name": "secret-assets", "emptyDir": {}}]),
            )
            .with(&path(kind, "volumeMounts"), user_mounts);
        let template = input.template(kind.workload());
        let name = format!("{}-secret-assets", kind.object_name());
        let volumes = template["spec"]["volumes"].as_array().expect("volumes");
        let secrets: Vec<_> = volumes
            .iter()
            .filter(|volume| volume["name"] == "secret-assets")
            .collect();
        let own = json!({"name": "secret-assets", "secret": {"secretName": name}});
        assert_eq!(secrets, [&own], "{kind:?}");
        let names: Vec<_> = mounts(&template)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let expected = [
            "sibling",
            "above",
            "config",
            "data",
            "procfs",
            "sysfs",
            "secret-assets",
        ];
        assert_eq!(names, expected, "{kind:?}");
        let secret = input.child("Secret", &name).expect("the Secret");
        assert_eq!(secret["data"], json!({"key": STANDARD.encode("password")}));
        // Without a reference to a Secret, nothing of a user is touched.
        let mut unused = input.clone();
        unused.publication.secrets.clear();
        assert!(unused.child("Secret", &name).is_none(), "{kind:?}");
        let kept = mounts(&unused.template(kind.workload()));
        assert!(
            kept.contains(&("exact".to_owned(), "/etc/vector/secrets".to_owned())),
            "{kind:?}"
        );
    }
}

#[test]
fn an_empty_list_of_volumes_replaces_the_default_one() {
    let input = Input::new(Kind::VectorAggregator)
        .with("volumes", json!([]))
        .with("volumeMounts", json!([]));
    let template = input.template("Deployment");
    let names = |list: &Value| {
        let list = list.as_array().expect("a list").iter();
        list.map(|it| it["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let expected = ["config", "data", "procfs", "sysfs"];
    assert_eq!(names(&template["spec"]["volumes"]), expected);
    let mounts = &template["spec"]["containers"][0]["volumeMounts"];
    assert_eq!(names(mounts), expected);
}

#[test]
fn a_path_is_mounted_once() {
    let own = json!([{"name": "buffers", "mountPath": "/vector-data-dir"}]);
    let input = Input::new(Kind::VectorAggregator).with("volumeMounts", own);
    let mounts = mounts(&input.template("Deployment"));
    let at_data: Vec<_> = mounts
        .iter()
        .filter(|(_, path)| path == "/vector-data-dir")
        .collect();
    assert_eq!(at_data.len(), 1, "{mounts:?}");
    assert_eq!(at_data[0].0, "buffers");
}

#[test]
fn lists_have_no_duplicates_that_server_side_apply_rejects() {
    let input = Input::new(Kind::Vector)
        .with(
            "agent.env",
            json!([
                {"name": "A", "value": "1"},
                {"name": "PROCFS_ROOT", "value": "/proc"},
                {"name": "A", "value": "2"},
            ]),
        )
        .with(
            "agent.host_aliases",
            json!([
                {"ip": "10.0.0.1", "hostnames": ["a"]},
                {"ip": "10.0.0.2"},
                {"ip": "10.0.0.1", "hostnames": ["b"]},
            ]),
        )
        .with(
            "agent.imagePullSecrets",
            json!([{"name": "a"}, {"name": "a"}]),
        );
    let spec = &input.template("DaemonSet")["spec"];
    let env = spec["containers"][0]["env"].as_array().expect("variables");
    assert_eq!(env[0], json!({"name": "A", "value": "2"}));
    let of_procfs: Vec<_> = env
        .iter()
        .filter(|it| it["name"] == "PROCFS_ROOT")
        .collect();
    let own = json!({"name": "PROCFS_ROOT", "value": "/host/proc"});
    assert_eq!(of_procfs, [&own]);
    let merged = json!([{"ip": "10.0.0.1", "hostnames": ["a", "b"]}, {"ip": "10.0.0.2"}]);
    assert_eq!(spec["hostAliases"], merged);
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "a"}]));
}

#[test]
fn a_version_without_the_flag_does_not_get_it() {
    for (image, is_set) in [
        ("timberio/vector:0.48.0-alpine", false),
        ("timberio/vector:0.57.0-alpine", true),
        ("mirror/vector@sha256:00", true),
    ] {
        let input = Input::new(Kind::VectorAggregator)
            .with("image", json!(image))
            .with("envVarInterpolation", json!(true));
        let args = input.template("Deployment")["spec"]["containers"][0]["args"].clone();
        let flag = json!("--dangerously-allow-env-var-interpolation");
        let has_flag = args.as_array().expect("arguments").contains(&flag);
        assert_eq!(has_flag, is_set, "{image}: {args}");
    }
}

#[test]
fn a_workload_without_an_image_runs_the_version_that_pipelines_are_validated_for() {
    let mut input = Input::new(Kind::Vector).with("agent.image", json!(""));
    let image =
        |input: &Input<'_>| input.template("DaemonSet")["spec"]["containers"][0]["image"].clone();
    assert_eq!(image(&input), "timberio/vector:0.57.0-distroless-libc");
    input.cluster.vector_version = lockstep_vector_api::VectorVersion::parse("0.48").expect("one");
    assert_eq!(image(&input), "timberio/vector:0.48.0-distroless-libc");
}

#[test]
fn a_compressed_configuration_has_the_same_content() {
    let mut input = Input::new(Kind::VectorAggregator).with("compressConfigFile", json!(true));
    let content = br#"{"sources": {"in": {"type": "stdin"}}}"#;
    let file = ("config.json".to_owned(), content.to_vec());
    input.publication.files = BTreeMap::from([file]);
    let secret = || input.child("Secret", "logs-aggregator").expect("a Secret");
    assert_eq!(secret(), secret());
    let data = secret()["data"]["config.json"].clone();
    let data = STANDARD.decode(data.as_str().expect("text"));
    let mut unpacked = Vec::new();
    let data = data.expect("base64");
    let read = GzDecoder::new(&data[..]).read_to_end(&mut unpacked);
    read.expect("gzip");
    assert_eq!(unpacked, content);
}

#[test]
fn a_divided_configuration_is_in_several_secrets_that_are_mounted_in_one_directory() {
    let mut input = Input::new(Kind::Vector);
    for file in ["agent.json", "agent-1.json"] {
        let content = file.as_bytes().to_vec();
        input.publication.files.insert(file.to_owned(), content);
    }
    for (secret, file) in [
        ("logs-agent", "agent.json"),
        ("logs-agent-1", "agent-1.json"),
    ] {
        let data = input.child("Secret", secret).expect("a Secret")["data"].clone();
        assert_eq!(data, json!({file: STANDARD.encode(file)}));
    }
    let pod = input.template("DaemonSet")["spec"].clone();
    let mut volumes = pod["volumes"].as_array().expect("volumes").iter();
    let volume = volumes.find(|it| it["name"] == "config").expect("a volume");
    let sources = json!([
        {"secret": {"name": "logs-agent-1"}},
        {"secret": {"name": "logs-agent"}},
    ]);
    assert_eq!(volume["projected"]["sources"], sources);
    // Compressed, all files are in one Secret.
    let compressed = input.with("agent.compressConfigFile", json!(true));
    let data = compressed.child("Secret", "logs-agent").expect("a Secret")["data"].clone();
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(2));
    assert!(compressed.child("Secret", "logs-agent-1").is_none());
}

#[test]
fn a_configuration_that_fits_in_no_secret_is_an_error_unless_compressed() {
    let mut input = Input::new(Kind::Vector);
    let file = ("agent.json".to_owned(), vec![b' '; (1 << 20) + 1]);
    input.publication.files = BTreeMap::from([file]);
    let error = input.try_objects().expect_err("too large");
    let OwnedObjectsError::SecretTooLarge { bytes, remedy, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(bytes, (1 << 20) + 1);
    assert!(remedy.contains("compressConfigFile"), "{remedy}");
    let compressed = input.with("agent.compressConfigFile", json!(true));
    assert!(compressed.try_objects().is_ok());
}
