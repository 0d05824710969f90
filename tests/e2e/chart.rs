//! Helm charts: they install the same as the kustomize bases, each value has an effect, and wrong values are rejected.

mod credentials;
mod normalized;
mod release;
mod running;
mod schema;
mod values;

pub use normalized::{relative_base, split_overlay};

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::env::root;

/// Name and namespace of the release with which the names of the objects are those of the kustomize base.
const RELEASE: [&str; 3] = ["lockstep", "--namespace", "lockstep-system"];

fn chart(name: &str) -> PathBuf {
    root().join("manifests/chart").join(name)
}

/// Runs `helm` and returns its standard output, or its standard error if it fails.
fn helm(arguments: &[&str]) -> Result<String, String> {
    let mut helm = lockstep_envtest::helm().expect("helm is built");
    result(&helm.args(arguments).output().expect("helm runs"))
}

fn result(output: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// Renders a chart with these values, as `helm install` does.
fn template(name: &str, values: &Value) -> Result<String, String> {
    template_of(&chart(name), values)
}

/// Renders the chart in a folder with these values.
fn template_of(chart: &Path, values: &Value) -> Result<String, String> {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("values.json");
    std::fs::write(&file, values.to_string()).expect("a file");
    let chart = [chart.to_string_lossy(), file.to_string_lossy()];
    let arguments = [
        &["template"],
        &RELEASE[..],
        &[&chart[0], "--values", &chart[1]],
    ];
    helm(&arguments.concat())
}

/// Returns the objects that a chart renders with these values.
fn objects(name: &str, values: &Value) -> Vec<Value> {
    let rendered = template(name, values);
    let rendered = rendered.unwrap_or_else(|error| panic!("{values}: {error}"));
    documents(&rendered)
}

/// Returns the documents of a YAML file that are not empty.
fn documents(text: &str) -> Vec<Value> {
    let documents = serde_saphyr::from_multiple::<Value>(text);
    let documents = documents.unwrap_or_else(|error| panic!("{error}: {text}"));
    documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect()
}

#[test]
fn both_charts_pass_lint() {
    for name in ["lockstep", "lockstep-crds"] {
        let path = chart(name);
        let linted = helm(&["lint", "--strict", &path.to_string_lossy()]);
        linted.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Artifact Hub shows both.
#[test]
fn the_chart_describes_its_crds_with_a_valid_example() {
    let read = |path: PathBuf| std::fs::read_to_string(&path).expect("a file");
    let metadata = documents(&read(chart("lockstep").join("Chart.yaml"))).remove(0);
    let annotation = |name: &str| {
        let annotation = &metadata["annotations"][format!("artifacthub.io/{name}")];
        documents(annotation.as_str().expect("an annotation")).remove(0)
    };
    let folder = chart("lockstep").join("files/crds");
    let mut crds: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of the CRDs")
        .map(|entry| documents(&read(entry.expect("a file").path())).remove(0))
        .map(|crd| {
            (
                crd["metadata"]["name"].clone(),
                crd["spec"]["names"]["kind"].clone(),
            )
        })
        .collect();
    let described = annotation("crds");
    let described = described.as_array().expect("a list").iter();
    let mut described: Vec<_> = described
        .map(|crd| (crd["name"].clone(), crd["kind"].clone()))
        .collect();
    crds.sort_by_key(|(name, _)| name.to_string());
    described.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(described, crds);
    for example in annotation("crdsExamples").as_array().expect("a list") {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("example.json");
        std::fs::write(&file, example.to_string()).expect("a file");
        let checked = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .arg("check")
            .arg(&file)
            .output();
        let checked = result(&checked.expect("the program runs"));
        checked.unwrap_or_else(|error| panic!("{example}: {error}"));
        // The command skips unknown kinds.
        assert!(crds.iter().any(|(_, kind)| *kind == example["kind"]));
    }
    assert_eq!(metadata["appVersion"], env!("CARGO_PKG_VERSION"));
}

/// The alerts and dashboards are those of the installation without Helm.
#[test]
fn the_monitoring_files_of_the_chart_are_current() {
    let source = root().join("manifests/monitoring");
    let copy = chart("lockstep").join("files/monitoring");
    let files = |folder: &PathBuf| {
        let of = |folder: PathBuf, ending: &str| -> Vec<(String, String)> {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            let mut files: Vec<_> = entries
                .map(|entry| entry.expect("a file").path())
                .filter(|path| path.to_string_lossy().ends_with(ending))
                .map(|path| {
                    let name = path.file_name().expect("a name").to_string_lossy();
                    (
                        name.into_owned(),
                        std::fs::read_to_string(&path).expect("text"),
                    )
                })
                .collect();
            files.sort();
            files
        };
        (
            of(folder.clone(), "rules.yaml"),
            of(folder.join("dashboards"), ".json"),
        )
    };
    assert!(
        files(&source) == files(&copy),
        "copy rules.yaml and dashboards/*.json from {} to {}",
        source.display(),
        copy.display()
    );
}
