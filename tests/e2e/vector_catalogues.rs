//! Catalogues of other versions of Vector: they are made from a schema, and every subcommand validates with them.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use lockstep_envtest::{Cluster, Moto, eventually};
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, condition, root};

/// Schema of the shipped version, in which another one calls the console sink `terminal`.
fn schema(directory: &Path) -> String {
    let packed = root().join("operators/vector/catalogue/vector-0.57/schema.json.gz");
    let packed = fs::File::open(packed).expect("the schema");
    let mut text = String::new();
    let read = GzDecoder::new(packed).read_to_string(&mut text);
    read.expect("gzip");
    let mut schema: Value = serde_json::from_str(&text).expect("JSON");
    let sinks = schema["definitions"]["vector::sinks::Sinks"]["oneOf"].as_array_mut();
    let mut sinks = sinks.expect("a list of sinks").iter_mut();
    let name = sinks
        .find_map(|sink| {
            let name = sink.pointer_mut("/allOf/1/properties/type/const")?;
            (*name == "console").then_some(name)
        })
        .expect("the console sink");
    *name = json!("terminal");
    let path = directory.join("schema.json");
    fs::write(&path, schema.to_string()).expect("a file");
    path.display().to_string()
}

fn lockstep(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command.args(arguments).output().expect("lockstep runs")
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Writes the catalogue of Vector 0.48 into a folder, compressed.
fn make(schema: &str, folder: &Path) -> String {
    let path = folder.join("vector-0.48.json.gz").display().to_string();
    let made = lockstep(&[
        "vector",
        "catalogue",
        "--from-schema",
        schema,
        "--vector-version=0.48",
        "--output-file",
        &path,
    ]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let noted = shown(&made);
    assert!(noted.contains("sink terminal"), "{noted}");
    // A ConfigMap has at most 1 MiB.
    let size = fs::metadata(&path).expect("a file").len();
    assert!((10_000..100_000).contains(&size), "{size}");
    path
}

fn pipeline(name: &str, sink: &str) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "sources": {"in": {"type": "kubernetes_logs"}},
            "sinks": {"out": {"type": sink, "inputs": ["in"], "encoding": {"codec": "json"}}},
        },
    })
}

fn agent(version: &str) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "Vector",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"agent": {"image": format!("timberio/vector:{version}.0-distroless-libc")}},
    })
}

#[test]
fn the_commands_validate_with_a_catalogue() {
    let directory = tempfile::tempdir().expect("a folder");
    let directory = directory.path();
    let catalogues = directory.join("catalogues");
    fs::create_dir(&catalogues).expect("a folder");
    let catalogue = make(&schema(directory), &catalogues);
    let write = |name: &str, content: &Value| {
        let path = directory.join(name);
        fs::write(&path, content.to_string()).expect("a file");
        path.display().to_string()
    };

    let config = write("vector.json", &pipeline("any", "terminal")["spec"]);
    let validate = ["vector", "validate", &config];
    assert_eq!(lockstep(&validate).status.code(), Some(78));
    let with = [&validate[..], &["--catalogue", &catalogue]].concat();
    let validated = lockstep(&with);
    assert_eq!(validated.status.code(), Some(0), "{}", shown(&validated));
    let listed = lockstep(&[
        "vector",
        "components",
        "terminal",
        "--catalogue",
        &catalogue,
    ]);
    assert!(shown(&listed).contains("Vector 0.48"), "{}", shown(&listed));

    let folder = format!("--vector-catalogues={}", catalogues.display());
    let policy = directory.join("policy.yaml");
    fs::write(&policy, "settings: {vector: {version: \"0.48\"}}\n").expect("a file");
    let policy = format!("--policy={}", policy.display());
    let new = write("new.json", &pipeline("new", "console"));
    let old = write("old.json", &pipeline("old", "terminal"));
    let code = |arguments: &[&str]| {
        let output = lockstep(&[&["check"], arguments].concat());
        (output.status.code(), shown(&output))
    };
    assert_eq!(code(&[&new]).0, Some(0));
    assert_eq!(code(&[&old]).0, Some(1));
    assert_eq!(code(&[&old, &folder]).0, Some(1));
    let (status, text) = code(&[&old, &folder, &policy]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = code(&[&new, &folder, &policy]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("Vector 0.48 has no such sink"), "{text}");
    // Without the catalogue, the warning names both versions.
    let (status, text) = code(&[&new, &policy]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("is validated for Vector 0.57"), "{text}");
    assert!(text.contains("no catalogue of Vector 0.48"), "{text}");
}

#[test]
fn wrong_files_are_errors_that_say_what_to_do() {
    let directory = tempfile::tempdir().expect("a folder");
    let directory = directory.path();
    let wrong = directory.join("wrong.json");
    fs::write(&wrong, "{}").expect("a file");
    let wrong = wrong.display().to_string();
    let schema = schema(directory);
    for (arguments, code, expected) in [
        (
            &[
                "vector",
                "catalogue",
                "--vector-version=0.48",
                "--from-schema",
                &wrong,
            ][..],
            2,
            "vector generate-schema",
        ),
        (
            &[
                "vector",
                "catalogue",
                "--vector-version=latest",
                "--from-schema",
                &schema,
            ],
            2,
            "`latest` is no version of Vector, such as `0.57`",
        ),
        (
            &["vector", "components", "--catalogue", &wrong],
            2,
            "is not a catalogue of this program",
        ),
        (
            &["check", "-", "--vector-catalogues=/none"],
            2,
            "cannot read the catalogues in /none",
        ),
    ] {
        let output = lockstep(arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(shown(&output).contains(expected), "{}", shown(&output));
    }
    let twice = directory.join("twice");
    fs::create_dir(&twice).expect("a folder");
    let first = make(&schema, &twice);
    fs::copy(&first, twice.join("again.json.gz")).expect("a copy");
    let folder = format!("--vector-catalogues={}", twice.display());
    let output = lockstep(&["check", "-", &folder]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        shown(&output).contains("is a catalogue of Vector 0.48, too; remove one of them"),
        "{}",
        shown(&output)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_and_controller_validate_for_the_version_of_the_workload() {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let options = EnvOptions {
        kinds: Some("Vector,VectorPipeline"),
        ..EnvOptions::default()
    };
    let mut env = TestEnv::install(cluster, moto, options).await;
    let denied = env.kubectl_apply(&pipeline("old", "terminal"));
    let denied = denied.expect_err("the type is unknown");
    assert!(denied.contains("Vector 0.57 has no such sink"), "{denied}");

    // Both processes read the catalogue from the ConfigMap of the policy when they start.
    let folder = env.installation.policy_folder().to_owned();
    make(&schema(env.cluster.directory()), &folder);
    let policy = "settings: {vector: {version: \"0.48\"}}\n";
    env.installation.set_policy(policy).expect("a policy");
    env.installation.webhook().kill();
    env.installation
        .start_webhook()
        .expect("the webhook starts");
    env.installation
        .restart_controller_with(&[])
        .expect("the controller starts");
    env.installation
        .wait_for_webhook(&env.cluster)
        .await
        .expect("the webhook is ready");
    env.kubectl_apply(&agent("0.48")).expect("stored");
    env.kubectl_apply(&pipeline("old", "terminal"))
        .expect("the webhook validates for Vector 0.48");
    let pipelines = env.objects(&pipeline("any", "any"));
    env.condition_of(&pipelines, "old", "Valid", "True").await;

    // A new version of the workload invalidates the pipeline that it runs; nothing else has changed.
    env.kubectl_apply(&agent("0.57")).expect("stored");
    let found = eventually("another validation", async || {
        let object = pipelines.get("old").await.ok()?;
        condition(&object, "Valid").filter(|condition| condition.status == "False")
    });
    let found = found
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(
        found.message.contains("Vector 0.57 has no such sink"),
        "{}",
        found.message
    );
    // For a version without a catalogue, the status has a warning that names both.
    env.kubectl_apply(&agent("0.40")).expect("stored");
    let warning = eventually("the warning", async || {
        let object = pipelines.get("old").await.ok()?;
        let warnings = object.data["status"]["warnings"].to_string();
        warnings.contains("Vector 0.40").then_some(warnings)
    });
    let warning = warning
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(
        warning.contains("is validated for Vector 0.48")
            && warning.contains("Vector default/agent runs it with Vector 0.40"),
        "{warning}"
    );
}
