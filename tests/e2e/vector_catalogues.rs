//! Catalogues of other versions of Vector: they are made from a schema, and every subcommand validates with them.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use kube::api::{DynamicObject, PostParams};
use lockstep_envtest::{Cluster, eventually};
use rds_simulator::Simulator;
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

/// Moves a file into a folder, so that no process reads a part of it.
fn publish(file: &str, folder: &Path, name: &str) {
    fs::create_dir_all(folder).expect("a folder");
    fs::rename(file, folder.join(name)).expect("the folder is on the same file system");
}

/// Waits until a pipeline is invalid for a reason.
async fn becomes_invalid(env: &TestEnv, name: &str, reason: &str) {
    let pipelines = env.objects(&pipeline("any", "any"));
    let what = format!("{name} is invalid: {reason}");
    let found = eventually(&what, async || {
        let object = pipelines.get(name).await.ok()?;
        let found = condition(&object, "Valid").filter(|condition| condition.status == "False");
        found.filter(|condition| condition.message.contains(reason))
    });
    found
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Waits until a pipeline has a warning, and returns all of its warnings.
async fn becomes_warned(env: &TestEnv, name: &str, warning: &str) -> String {
    let pipelines = env.objects(&pipeline("any", "any"));
    let what = format!("{name} has a warning: {warning}");
    let found = eventually(&what, async || {
        let object = pipelines.get(name).await.ok()?;
        let warnings = object.data["status"]["warnings"].to_string();
        warnings.contains(warning).then_some(warnings)
    });
    found
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()))
}

/// Waits until the webhook accepts or denies a new pipeline with the old sink.
async fn webhook_accepts_old(env: &TestEnv, is_accepted: bool) {
    let object = pipeline("dry-run", "terminal");
    let pipelines = env.objects(&object);
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let what = format!("accepted: {is_accepted}");
    let changed = eventually(&what, async || {
        let created = pipelines.create(&params, &object).await;
        (created.is_ok() == is_accepted).then_some(())
    });
    changed
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_and_controller_validate_for_the_version_of_the_workload_as_soon_as_its_catalogue_exists()
 {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let aws = Simulator::start().await.expect("a simulator");
    let options = EnvOptions {
        kinds: Some("Vector,VectorPipeline"),
        ..EnvOptions::default()
    };
    let env = TestEnv::install(cluster, aws, options).await;
    let denied = env.kubectl_apply(&pipeline("old", "terminal"));
    let denied = denied.expect_err("the type is unknown");
    assert!(denied.contains("Vector 0.57 has no such sink"), "{denied}");
    env.kubectl_apply(&agent("0.48")).expect("stored");
    env.kubectl_apply(&pipeline("new", "console"))
        .expect("without a catalogue, the shipped one is used");
    let pipelines = env.objects(&pipeline("any", "any"));
    env.condition_of(&pipelines, "new", "Valid", "True").await;

    // Both processes read the catalogue while they run.
    let folder = env.installation.config_map_folder("vector-catalogues");
    let directory = env.cluster.directory();
    let catalogue = make(&schema(directory), directory);
    publish(&catalogue, &folder, "0.48.json.gz");
    becomes_invalid(&env, "new", "Vector 0.48 has no such sink").await;
    let policy = "settings: {vector: {version: \"0.48\"}}\n";
    env.installation.set_policy(policy).expect("a policy");
    webhook_accepts_old(&env, true).await;
    env.kubectl_apply(&pipeline("old", "terminal"))
        .expect("accepted");
    env.condition_of(&pipelines, "old", "Valid", "True").await;

    // A broken file is reported, and the last valid catalogue stays in force.
    let valid = async |expected: &str| {
        let expected = format!("lockstep_vector_catalogues_valid {expected}\n");
        let urls = [
            env.installation.webhook_health_url(),
            env.installation.controller_health_url(),
        ];
        let reported = eventually(&expected, async || {
            for url in &urls {
                if !env.metrics(url).await.contains(&expected) {
                    return None;
                }
            }
            Some(())
        });
        reported
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
    };
    valid("1").await;
    let broken = directory.join("broken.json");
    fs::write(&broken, "{").expect("a file");
    publish(&broken.display().to_string(), &folder, "0.48.json.gz");
    valid("0").await;
    webhook_accepts_old(&env, true).await;
    env.kubectl_apply(&pipeline("other", "terminal"))
        .expect("accepted");
    env.condition_of(&pipelines, "other", "Valid", "True").await;

    // A new version of the workload invalidates the pipeline that it runs; nothing else has changed.
    env.kubectl_apply(&agent("0.57")).expect("stored");
    becomes_invalid(&env, "old", "Vector 0.57 has no such sink").await;
    // For a version without a catalogue, the status has a warning that names both.
    env.kubectl_apply(&agent("0.40")).expect("stored");
    let warning = becomes_warned(&env, "old", "Vector 0.40").await;
    assert!(
        warning.contains("is validated for Vector 0.48")
            && warning.contains("Vector default/agent runs it with Vector 0.40"),
        "{warning}"
    );

    // Without the catalogue, the shipped one is used again.
    fs::remove_file(folder.join("0.48.json.gz")).expect("it exists");
    webhook_accepts_old(&env, false).await;
    // A pipeline that was valid before stays valid, with a warning.
    becomes_warned(&env, "old", "Vector 0.57 has no such sink").await;
    valid("1").await;
}
