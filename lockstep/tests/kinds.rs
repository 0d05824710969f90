//! Tests of the kinds of the shipped program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use regex::Regex;
use serde_json::Value;

fn manifests(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("manifests")
        .arg(folder)
        .args(arguments)
        .output()
        .expect("the program runs")
}

/// Returns the plurals of the installed kinds.
fn installed(arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = manifests(folder.path(), arguments);
    assert!(output.status.success(), "{output:?}");
    plurals(folder.path())
}

/// Returns the plurals of the kinds whose CRDs are in a folder.
fn plurals(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("crds")).expect("a folder");
    let names = entries.map(|entry| entry.expect("a file").file_name());
    let mut plurals: Vec<_> = names
        .filter_map(|name| {
            let name = name.to_str()?.strip_suffix(".yaml")?;
            (name != "kustomization").then(|| name.to_owned())
        })
        .collect();
    plurals.sort();
    plurals
}

#[test]
fn examples_are_installed_only_by_name_and_any_kind_can_be_excluded() {
    assert_eq!(installed(&[]), ["clouddatabases"]);
    assert_eq!(installed(&["--kinds=*,Echo"]), ["clouddatabases", "echoes"]);
    assert_eq!(installed(&["--kinds", "Echo"]), ["echoes"]);
    assert_eq!(
        installed(&["--kinds", "-CloudDatabase,*"]),
        Vec::<String>::new()
    );
}

#[test]
fn an_unknown_kind_is_reported_with_the_known_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = manifests(folder.path(), &["--kinds=Eko"]);
    assert!(!output.status.success(), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("'Eko'") && error.contains("CloudDatabase, Echo"),
        "{error}"
    );
}

/// Fields that Kubernetes defines, which are copied into Pods and other owned objects: the API server validates the names in
/// them, and nothing is requested by one.
const OF_KUBERNETES: [&str; 19] = [
    "affinity",
    "configReloaderResources",
    "containerSecurityContext",
    "env",
    "envFrom",
    "imagePullSecrets",
    "livenessProbe",
    "metrics",
    "podSecurityContext",
    "podSecurityPolicyName",
    "priorityClassName",
    "readinessProbe",
    "resources",
    "runtimeClassName",
    "schedulerName",
    "storageClassName",
    "volumeClaimTemplates",
    "volumeMounts",
    "volumes",
];

/// Adds the paths of the names that a schema describes, with their patterns.
fn add_names(path: &str, schema: &Value, names: &mut Vec<(String, String)>) {
    let fields = schema["properties"].as_object().into_iter().flatten();
    for (name, field) in fields.filter(|(name, _)| !OF_KUBERNETES.contains(&name.as_str())) {
        let path = format!("{path}.{name}");
        let lower = name.trim_end_matches('s');
        let is_name = matches!(lower, "name" | "namespace")
            || lower.ends_with("Name")
            || lower.ends_with("Namespace");
        if is_name && field["enum"].is_null() {
            let name = if field["items"].is_null() {
                field
            } else {
                &field["items"]
            };
            let pattern = name["pattern"].as_str().unwrap_or_default();
            names.push((path.clone(), pattern.to_owned()));
        }
        add_names(&path, field, names);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            add_names(&format!("{path}[]"), &schema[below], names);
        }
    }
}

/// Returns the schemas of the specs of all kinds and versions, by the plurals of the kinds.
fn specs_of_all_kinds() -> Vec<(String, Value)> {
    let folder = tempfile::tempdir().expect("a folder");
    let unknown = manifests(folder.path(), &["--kinds=None"]);
    let message = String::from_utf8(unknown.stderr).expect("text");
    let (_, kinds) = message.split_once("allowed are `*`, ").expect("a list");
    let (kinds, _) = kinds.split_once(", and").expect("its end");
    let all = format!("--kinds={}", kinds.replace(' ', ""));
    let written = manifests(folder.path(), &[&all]);
    assert!(written.status.success(), "{written:?}");
    let mut specs = Vec::new();
    for plural in plurals(folder.path()) {
        let path = folder.path().join(format!("crds/{plural}.yaml"));
        let text = fs::read_to_string(path).expect("a file");
        let crd: Value = serde_saphyr::from_str(&text).expect("a CRD");
        let versions = crd["spec"]["versions"].as_array().expect("a list");
        specs.extend(versions.iter().map(|version| {
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            (plural.clone(), spec.clone())
        }));
    }
    specs
}

/// The controller reads an object that it cannot parse as one with a text as its spec.
#[test]
fn a_text_is_the_spec_of_no_kind() {
    let specs = specs_of_all_kinds();
    assert!(specs.len() >= 7, "{}", specs.len());
    for (plural, spec) in specs {
        assert_eq!(spec["type"], "object", "{plural}");
    }
}

/// Programs put the name of another object into the path of a request. What a path means must not depend on the name.
#[test]
fn every_name_in_a_spec_is_a_segment_of_a_path_by_its_pattern() {
    let mut names = Vec::new();
    for (plural, spec) in specs_of_all_kinds() {
        add_names(&plural, &spec, &mut names);
    }
    for path in [
        "clouddatabases.connectionSecret.name",
        "clouddatabases.replicaOf.name",
        "vectorpipelines.secret[].namespace",
        "clustervectoraggregators.resourceNamespace",
    ] {
        assert!(names.iter().any(|(known, _)| known == path), "{path}");
    }
    for (path, pattern) in names {
        assert!(!pattern.is_empty(), "{path} has no pattern");
        let pattern = Regex::new(&pattern).expect("a pattern");
        for name in [
            ".",
            "..",
            "a/b",
            "/",
            "a?watch=true",
            "?",
            "a#b",
            "a b",
            "a%2Fb",
            "a\n",
            "ä",
            "a\\b",
            "a;b",
        ] {
            assert!(!pattern.is_match(name), "{path}: {name}");
        }
    }
}
