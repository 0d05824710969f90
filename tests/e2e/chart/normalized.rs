//! Comparison of the chart with the kustomize bases.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_envtest::Cluster;
use serde_json::{Map, Value, json};

use super::{documents, objects, template_of};
use crate::env::root;

/// Labels that Helm charts have by convention. The kustomize bases have the first one's peer, the name, only.
const OF_CHARTS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// Annotations that keep the CRDs: each tool has its own.
const KEEP: [&str; 3] = [
    "argocd.argoproj.io/sync-options",
    "helm.sh/resource-policy",
    "kustomize.toolkit.fluxcd.io/prune",
];

/// Returns the objects by kind, namespace and name, without the differences that are intended:
///
/// - The namespace: Helm creates it with `--create-namespace`, if at all.
/// - The labels that charts have by convention. Selectors have the label of the release, too, because a namespace may
///   contain two releases.
/// - The annotations that keep the CRDs, which differ between tools.
fn normalized(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let objects = objects
        .into_iter()
        .filter(|object| object["kind"] != "Namespace");
    objects
        .map(|mut object| {
            remove_everywhere(&mut object);
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let identity = [
                text("/kind"),
                text("/metadata/namespace"),
                text("/metadata/name"),
            ];
            let identity = identity.map(Option::unwrap_or_default).join("/");
            (identity, object)
        })
        .collect()
}

fn remove_everywhere(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["labels", "matchLabels", "selector", "annotations"] {
                let Some(map) = fields.get_mut(name).and_then(Value::as_object_mut) else {
                    continue;
                };
                let before = map.len();
                map.retain(|key, _| {
                    !OF_CHARTS.contains(&key.as_str()) && !KEEP.contains(&key.as_str())
                });
                if before > 0 && map.is_empty() {
                    fields.remove(name);
                }
            }
            fields.values_mut().for_each(remove_everywhere);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_everywhere),
        _ => {}
    }
}

/// Returns the objects of kustomize bases.
fn kustomized(cluster: &Cluster, bases: &[PathBuf]) -> Vec<Value> {
    let bases = bases.iter().map(|base| {
        let rendered = cluster.run_kubectl(&["kustomize", &base.to_string_lossy()]);
        documents(&rendered.expect("the base renders"))
    });
    bases.flatten().collect()
}

fn written(cluster: &Cluster, name: &str, argument: &str) -> PathBuf {
    let folder = cluster.directory().join(name);
    let written = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["manifests", argument])
        .arg(&folder)
        .output()
        .expect("the program runs");
    assert!(written.status.success(), "{written:?}");
    folder
}

/// Returns the path of the base from a folder: kustomize accepts relative paths only.
pub fn relative_base(folder: &Path) -> String {
    relative(folder, &root().join("manifests/config"))
}

fn relative(folder: &Path, manifests: &Path) -> String {
    let manifests = manifests.canonicalize().expect("a path");
    let up = "../".repeat(folder.components().count() - 1);
    let base = manifests.strip_prefix("/").expect("a path");
    format!("{up}{}", base.display())
}

/// Writes an overlay of the base with the component `split`.
pub fn split_overlay(cluster: &Cluster) -> PathBuf {
    overlay(cluster, &root().join("manifests/config"))
}

/// Writes an overlay of a folder of manifests with its component `split`.
fn overlay(cluster: &Cluster, base: &Path) -> PathBuf {
    let name = base.file_name().expect("a name").to_string_lossy();
    let overlay = cluster.directory().join(format!("overlay-of-{name}"));
    fs::create_dir(&overlay).expect("a folder");
    let base = relative(&overlay, base);
    let kustomization = format!("resources: [{base}]\ncomponents: [{base}/split]\n");
    fs::write(overlay.join("kustomization.yaml"), kustomization).expect("a file");
    overlay
}

/// Returns a copy of the chart for other kinds.
fn chart_with(cluster: &Cluster, kinds: &str) -> PathBuf {
    let charts = cluster.directory().join("charts");
    let chart = root().join("manifests/chart");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&chart, &charts])
        .status();
    assert!(copied.expect("cp runs").success());
    let bases = cluster.directory().join("bases");
    let written = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["manifests", kinds, "--charts"])
        .args([&charts, &bases])
        .output()
        .expect("the program runs");
    assert!(written.status.success(), "{written:?}");
    charts.join("lockstep")
}

fn assert_equal(mode: &str, chart: Vec<Value>, kustomize: Vec<Value>) {
    let (chart, kustomize) = (normalized(chart), normalized(kustomize));
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&chart), names(&kustomize), "{mode}");
    for (name, object) in &kustomize {
        let (ours, theirs) = (&chart[name], object);
        let differences = differences(ours, theirs, "");
        assert!(differences.is_empty(), "{mode}: {name}: {differences:#?}");
    }
}

/// Returns the fields in which two values differ.
fn differences(a: &Value, b: &Value, path: &str) -> Vec<String> {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<_> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            let absent = Value::Null;
            let field =
                |map: &Map<String, Value>, name: &str| map.get(name).unwrap_or(&absent).clone();
            names
                .into_iter()
                .flat_map(|name| {
                    let path = format!("{path}.{name}");
                    differences(&field(left, name), &field(right, name), &path)
                })
                .collect()
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs
                .flat_map(|(index, (a, b))| differences(a, b, &format!("{path}[{index}]")))
                .collect()
        }
        _ if a == b => Vec::new(),
        _ => vec![format!("{path}: the chart has {a}, kustomize {b}")],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chart_renders_what_kustomize_renders_in_every_mode() {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let config = root().join("manifests/config");
    let with_crds = |folder: &Path| ["crds", "crd-protection", ""].map(|base| folder.join(base));
    let kustomize = |bases: &[PathBuf]| kustomized(&cluster, bases);

    let default = with_crds(&config);
    assert_equal(
        "default",
        objects("lockstep", &json!({})),
        kustomize(&default),
    );

    let split = [
        config.join("crds"),
        config.join("crd-protection"),
        split_overlay(&cluster),
    ];
    let values = json!({"webhook": {"mode": "split"}});
    assert_equal("split", objects("lockstep", &values), kustomize(&split));

    let only = written(&cluster, "only", "--webhook-only");
    let values = json!({"webhook": {"mode": "only"}});
    assert_equal("only", objects("lockstep", &values), kustomize(&[only]));

    let off = written(&cluster, "off", "--no-webhook");
    let values = json!({"webhook": {"mode": "off"}});
    assert_equal(
        "off",
        objects("lockstep", &values),
        kustomize(&with_crds(&off)),
    );

    // In the manifests, the first namespace is that of the controller; in the chart, it is that of the release.
    let tenants = written(
        &cluster,
        "tenants",
        "--watch-namespaces=lockstep-system,team-b",
    );
    let bases = ["crds", "crd-protection", "cluster", ""].map(|base| tenants.join(base));
    let values = json!({"webhook": {"mode": "off"}, "namespaces": ["lockstep-system", "team-b"]});
    assert_equal(
        "namespaces",
        objects("lockstep", &values),
        kustomize(&bases),
    );

    // Some kinds need further volumes.
    let kinds = "--kinds=*,Vector,VectorPipeline";
    let vector = written(&cluster, "vector", kinds);
    let chart = chart_with(&cluster, kinds);
    for (mode, bases) in [
        ("sidecar", with_crds(&vector).to_vec()),
        (
            "split",
            vec![
                vector.join("crds"),
                vector.join("crd-protection"),
                overlay(&cluster, &vector),
            ],
        ),
    ] {
        let values = json!({"webhook": {"mode": mode}});
        let rendered = template_of(&chart, &values).expect("the chart renders");
        let ours = documents(&rendered);
        let deployments = ours.iter().filter(|object| object["kind"] == "Deployment");
        for deployment in deployments {
            let volumes = deployment["spec"]["template"]["spec"]["volumes"].to_string();
            assert!(volumes.contains("lockstep-vector-catalogues"), "{volumes}");
        }
        assert_equal(&format!("{mode} with Vector"), ours, kustomize(&bases));
    }

    let crds = [config.join("crds"), config.join("crd-protection")];
    let values = json!({"fullnameOverride": "lockstep-crd", "nameOverride": "lockstep"});
    assert_equal(
        "CRDs apart",
        objects("lockstep-crds", &values),
        kustomize(&crds),
    );
}
